// Hopper's products of 8-bit floats (e4m3), one function a width. Both tiles lie in shared memory
// with their rows along k: of 8-bit numbers wgmma takes no other order. Source: PTX ISA,
// wgmma.mma_async.
#pragma once
#include "../../matmul/kernels/hopper_instructions.cuh"

// Queues d = a b, or d += a b if `add`. a: 64 x 32, b: 256 x 32 (its rows are the columns of d).
__device__ void wgmma_e4m3(float (&d)[128], descriptor a, descriptor b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %130, 0; "
        "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 {" SUMS_128
        "}, %128, %129, p, 1, 1; }"
        : F64(0), F64(64)
        : "l"(a), "l"(b), "r"(add));
}

// The same with b: 128 x 32.
__device__ void wgmma_e4m3(float (&d)[64], descriptor a, descriptor b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %66, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" SUMS_64 "}, %64, %65, p, 1, 1; }"
        : F64(0)
        : "l"(a), "l"(b), "r"(add));
}

// The same with b: 192 x 32.
__device__ void wgmma_e4m3(float (&d)[96], descriptor a, descriptor b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %98, 0; "
        "wgmma.mma_async.sync.aligned.m64n192k32.f32.e4m3.e4m3 {" SUMS_96 "}, %96, %97, p, 1, 1; }"
        : F64(0), F32(64)
        : "l"(a), "l"(b), "r"(add));
}
