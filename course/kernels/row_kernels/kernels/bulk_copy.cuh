// What Hopper (compute capability 9.0) adds for streaming: bulk copies that a barrier in shared
// memory counts in, and clusters of blocks that write to each other's shared memory.
// Names are those of the PTX instructions (PTX ISA, "Data Movement", "mbarrier",
// "barrier.cluster").
#pragma once

using Barrier = unsigned long long;

__device__ inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// ---- what L2 should do with the lines of an access

using Policy = unsigned long long;

__device__ inline Policy evict_last() {
    Policy policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ inline Policy evict_normal() {
    Policy policy;
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ inline Policy evict_first() {
    Policy policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// ---- a barrier that waits for bytes

// One thread arrives at it a phase: the one that starts the copies.
__device__ inline void barrier_init(Barrier* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)));
}

// The copy engine and the cluster's other blocks must see initialised barriers.
__device__ inline void fence_barrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The phase ends when so many bytes have come.
__device__ inline void barrier_expect(Barrier* barrier, unsigned bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

// Wait until the phase with this parity (0, 1, 0, ...) has ended.
__device__ inline void barrier_wait(Barrier* barrier, unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// ---- bulk copies

// Copy bytes from global to this block's shared memory; both addresses and the size are multiples
// of 16. Returns at once; the barrier counts the bytes as they come.
__device__ inline void bulk_copy(void* to, const void* from, unsigned bytes, Barrier* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(evict_last())
        : "memory");
}

// What threads wrote to shared memory, the copy engine is to see.
__device__ inline void fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Copy bytes from shared to global memory; both addresses and the size are multiples of 16.
// Returns at once.
__device__ inline void bulk_store(void* to, const void* from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
}

// The stores that this thread has started since are one group.
__device__ inline void bulk_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Wait until all groups of this thread but the latest `pending` have read shared memory.
template <int pending>
__device__ inline void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

// ---- clusters

// Tell the cluster that this thread's block has begun, and wait until all blocks have. As a barrier
// for every row it would cost too much: with `release` it waits until all earlier stores are done.
__device__ inline void cluster_arrive() {
    __syncwarp();  // `aligned` promises that a warp's threads come together
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ inline void cluster_wait() {
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// All threads of the cluster meet, and see what the others have written to shared memory.
__device__ inline void cluster_sync() {
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    cluster_wait();
}

// Where `local` lies in the shared memory of the cluster's block `rank`.
__device__ inline unsigned remote_address(const void* local, int rank) {
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(shared_address(local)), "r"(rank));
    return address;
}

// Write a value to where `to` lies in the block `rank`, and let that block's barrier count its
// bytes. Unlike a barrier of the whole cluster it does not wait for this block's earlier stores.
__device__ inline void send(float* to, int rank, float value, Barrier* barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(
                     remote_address(to, rank)),
                 "f"(value), "r"(remote_address(barrier, rank))
                 : "memory");
}

__device__ inline void send(float2* to, int rank, float2 value, Barrier* barrier) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
            remote_address(to, rank)),
        "f"(value.x), "f"(value.y), "r"(remote_address(barrier, rank))
        : "memory");
}

// Read what lies where `local` does in the block `rank`.
__device__ inline float remote(const float* local, int rank) {
    float value;
    asm volatile("ld.shared::cluster.f32 %0, [%1];"
                 : "=f"(value)
                 : "r"(remote_address(local, rank)));
    return value;
}
