// What the backward pass asks of Hopper besides the forward's instructions: wgmma with the
// left factor turned; sums added to global memory; rows copied without a tensor map.
// Sources: PTX ISA, "wgmma.mma_async", "red", "cp.async.bulk", "stmatrix".
#pragma once
#include "hopper_products.cuh"

#define SUMS_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"

// As in hopper_products.cuh, d = a b, or d += a b if `add`, with a's rows along m, b's along k.
#define MULTIPLY_TURNED(WIDTH, COUNT, SUMS, A, B, ADD, ...)                                   \
    __device__ void multiply_turned(float (&d)[COUNT], descriptor a, descriptor b, int add) { \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #ADD                                  \
                     ", 0; "                                                                  \
                     "wgmma.mma_async.sync.aligned.m64n" #WIDTH "k16.f32.bf16.bf16 {" SUMS    \
                     "}, %" #A ", %" #B ", p, 1, 1, 1, 0; }"                                  \
                     : __VA_ARGS__                                                            \
                     : "l"(a), "l"(b), "r"(add));                                             \
    }
MULTIPLY_TURNED(32, 16, SUMS_16, 16, 17, 18, F16(0))
MULTIPLY_TURNED(64, 32, SUMS_32, 32, 33, 34, F32(0))

// Four matrices of 8 x 8 numbers per warp, each transposed on its way to shared memory.
__device__ void store_matrices_transposed(void* to, const unsigned* r) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(to)),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

// Adds four numbers to four in global memory, atomically: other blocks add to them, too.
__device__ void add_to_memory(float* to, const float* from) {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to),
                 "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3])
                 : "memory");
}

// A run of bytes, a multiple of 16 long.
__device__ void load_bytes(void* to, const void* from, int bytes, barrier* b) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(b))
        : "memory");
}
