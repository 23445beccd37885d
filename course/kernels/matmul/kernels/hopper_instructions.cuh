// Hopper's own instructions, one small function each. Names and rules: PTX ISA, target sm_90a.
#pragma once
#include <cuda_bf16.h>
#include "wgmma_sums.cuh"
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "this kernel uses wgmma, which only Hopper has (compute capability 9.0, target sm_90a)"
#endif
#ifdef __CUDACC_RTC__
struct alignas(64) CUtensorMap {  // as in <cuda.h>, which NVRTC cannot read
    unsigned long long opaque[16];
};
#else
#include <cuda.h>
#endif

using bf16 = __nv_bfloat16;
using barrier = unsigned long long;
using descriptor = unsigned long long;

__device__ unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// ---- mbarrier: a pass is over when enough threads have arrived and all expected bytes have come

__device__ void barrier_init(barrier* b, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals));
}

// After the inits: the copy engine and the cluster's other block see them.
__device__ void barriers_ready() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void barrier_arrive(barrier* b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}

// One arrival, and so many bytes to wait for.
__device__ void barrier_expect(barrier* b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)),
                 "r"(bytes)
                 : "memory");
}

// Waits until a pass is over. parity: the number of that pass, modulo 2.
__device__ void barrier_wait(barrier* b, int parity) {
    int over = 0;
    while (!over)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
            "selp.s32 %0, 1, 0, p; }"
            : "=r"(over)
            : "r"(shared_address(b)), "r"(parity)
            : "memory");
}

// ---- TMA: one thread asks for a box of a matrix, the barrier hears of every byte that arrives

__device__ void tma_load(void* to, const CUtensorMap* map, barrier* b, int column, int row) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(column), "r"(row)
        : "memory");
}

// The same for both blocks of a cluster: box and message arrive at the same place in each.
__device__ void tma_load_to_both(void* to, const CUtensorMap* map, barrier* b, int column,
                                 int row) {
    unsigned short blocks = 0b11;
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(column), "r"(row), "h"(blocks)
        : "memory");
}

__device__ void tma_store(const CUtensorMap* map, const void* from, int column, int row) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
        "r"(shared_address(from)), "r"(column), "r"(row)
        : "memory");
}

__device__ void close_stores() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until this thread's stores have read shared memory; until they have arrived.
__device__ void stores_have_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ void stores_have_arrived() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// The copy engine shall see what threads have written to shared memory.
__device__ void show_to_copy_engine() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- wgmma: 128 threads multiply tiles in shared memory

// A tile for wgmma, swizzled by 128 bytes: where it begins, and how far apart its parts are that
// are 128 bytes wide (`across`). Addresses and distances count in units of 16 bytes.
__device__ descriptor tile_for_wgmma(const void* p, int across) {
    const descriptor EIGHT_ROWS = 8 * 128;  // bytes from one group of 8 rows to the next
    const descriptor SWIZZLE_128 = 1;
    // In a cluster, the upper bits of a shared address say which block it belongs to: no part here
    descriptor start = shared_address(p) & 0x3ffff;
    return start / 16 | across / 16 << 16 | EIGHT_ROWS / 16 << 32 | SWIZZLE_128 << 62;
}

// Queues d = a b, or d += a b if `add`. a: 64 x 16, its rows along k. b: 16 x 256, its rows along
// n, hence the last 1. d: 64 x 256, of which each thread holds 128.
__device__ void wgmma_64x256x16(float (&d)[128], descriptor a, descriptor b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %130, 0; "
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" SUMS_128
        "}, %128, %129, p, 1, 1, 0, 1; }"
        : F64(0), F64(64)
        : "l"(a), "l"(b), "r"(add));
}

// Before the first of a group: registers and shared memory are ready.
__device__ void wgmma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ void wgmma_close_group() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until at most PENDING of this warp group's groups are still being multiplied.
template <int PENDING>
__device__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// ---- registers: a warp group gives some back, or takes what others have given

__device__ void keep_40_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
}
__device__ void take_232_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
}

// ---- clusters: two blocks that run side by side and reach each other's shared memory

__device__ int cluster_rank() {
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
}

// Arrives at the same barrier of block `rank`. Nothing has been written that it would have to
// publish, so it is no .release.cluster: that would be a fence for the whole GPU.
__device__ void barrier_arrive_at(barrier* b, int rank) {
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
        "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(shared_address(b)),
        "r"(rank)
        : "memory");
}

// ---- from registers to shared memory: four matrices of 8 x 8 numbers a warp

__device__ void store_matrices(void* to, const unsigned (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(to)),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

// A meeting of one warp group; number: 1 to 15 (0 is __syncthreads).
__device__ void meet_warpgroup(int number) {
    asm volatile("bar.sync %0, 128;" ::"r"(number) : "memory");
}
