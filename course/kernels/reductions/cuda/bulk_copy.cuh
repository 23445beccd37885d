// Copies that a copy engine makes while the threads do something else (compute capability 9.0 and
// later), and the barriers in shared memory that tell of their arrival. One PTX instruction each;
// see "cp.async.bulk" and "mbarrier" in the PTX manual.
#pragma once

using Barrier = unsigned long long;  // lies in shared memory

__device__ inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// A phase of the barrier is over when `arrivals` threads have arrived and all expected bytes too.
__device__ inline void barrier_init(Barrier* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

__device__ inline void arrive(Barrier* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

__device__ inline void arrive_and_expect(Barrier* barrier, unsigned bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

// Wait until the barrier's phase number `phase` (0, 1, 2 ...) is over.
__device__ inline void wait_for(Barrier* barrier, unsigned phase) {
    unsigned over = 0;
    while (!over) {
        asm volatile(
            "{\n"
            ".reg .pred over;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
            "selp.u32 %0, 1, 0, over;\n"
            "}"
            : "=r"(over)
            : "r"(shared_address(barrier)), "r"(phase & 1)
            : "memory");
    }
}

// What this thread has written to shared memory may be read by the copy engine from here on.
__device__ inline void shared_memory_to_copy_engine() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// In the L2 cache, what is read or written once gives way first.
__device__ inline unsigned long long used_once() {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Global to shared memory; `bytes` is a multiple of 16, and both addresses are.
__device__ inline void bulk_load(void* shared, const void* global, unsigned bytes, Barrier* arrived,
                                 unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(arrived)), "l"(policy)
        : "memory");
}

// Shared to global memory; belongs to this thread's next group of stores.
__device__ inline void bulk_store(void* global, const void* shared, unsigned bytes,
                                  unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(
            global),
        "r"(shared_address(shared)), "r"(bytes), "l"(policy)
        : "memory");
}

__device__ inline void end_group_of_stores() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Wait until the shared memory of this thread's stores, but for the last `pending` groups, has
// been read.
template <int pending>
__device__ inline void wait_until_stores_have_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

// Wait until this thread's stores are in global memory.
__device__ inline void wait_for_stores() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
