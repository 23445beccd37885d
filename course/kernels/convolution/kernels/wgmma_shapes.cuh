// wgmma in the widths that these kernels need: 64 x 16 times 16 x N, N = 2 * the sums of a thread.
// A_TURNED: the rows of a lie along m, not along k. B_TURNED: those of b lie along n, not along k.
// Source: PTX ISA, "wgmma.mma_async".
#pragma once
#include "../../matmul/kernels/hopper_instructions.cuh"

template <int A_TURNED, int B_TURNED>
__device__ void wgmma(float (&d)[128], descriptor a, descriptor b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %130, 0; "
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" SUMS_128
        "}, %128, %129, p, 1, 1, %131, %132; }"
        : F64(0), F64(64)
        : "l"(a), "l"(b), "r"(add), "n"(A_TURNED), "n"(B_TURNED));
}

template <int A_TURNED, int B_TURNED>
__device__ void wgmma(float (&d)[116], descriptor a, descriptor b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %118, 0; "
        "wgmma.mma_async.sync.aligned.m64n232k16.f32.bf16.bf16 {" SUMS_116
        "}, %116, %117, p, 1, 1, %119, %120; }"
        : F64(0), F32(64), F16(96), F4(112)
        : "l"(a), "l"(b), "r"(add), "n"(A_TURNED), "n"(B_TURNED));
}

template <int A_TURNED, int B_TURNED>
__device__ void wgmma(float (&d)[96], descriptor a, descriptor b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %98, 0; "
        "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {" SUMS_96
        "}, %96, %97, p, 1, 1, %99, %100; }"
        : F64(0), F32(64)
        : "l"(a), "l"(b), "r"(add), "n"(A_TURNED), "n"(B_TURNED));
}

template <int A_TURNED, int B_TURNED>
__device__ void wgmma(float (&d)[64], descriptor a, descriptor b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %66, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SUMS_64
        "}, %64, %65, p, 1, 1, %67, %68; }"
        : F64(0)
        : "l"(a), "l"(b), "r"(add), "n"(A_TURNED), "n"(B_TURNED));
}

template <int A_TURNED, int B_TURNED>
__device__ void wgmma(float (&d)[32], descriptor a, descriptor b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %34, 0; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SUMS_32
        "}, %32, %33, p, 1, 1, %35, %36; }"
        : F32(0)
        : "l"(a), "l"(b), "r"(add), "n"(A_TURNED), "n"(B_TURNED));
}
