// What the fused block's two passes share. A block of THREADS threads has one row of COLUMNS
// bfloat16 numbers at a time; a thread keeps its VALUES of them in registers, in float32.
#pragma once
#include <cuda_bf16.h>

#include "random.cuh"

#ifndef COLUMNS
#define COLUMNS 4096
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef BLOCKS
#define BLOCKS 4  // of an SM at a time
#endif

#define SHAPED __launch_bounds__(THREADS, BLOCKS)

using bf16 = __nv_bfloat16;
constexpr int PACK = 8;  // numbers of one access, 16 bytes
constexpr int PACKS = (COLUMNS / PACK + THREADS - 1) / THREADS;
constexpr int VALUES = PACKS * PACK;
constexpr int WARPS = THREADS / 32;
static_assert(COLUMNS % PACK == 0, "rows are whole accesses");

__device__ inline int column_of(int pack) {
    return (pack * THREADS + threadIdx.x) * PACK;
}

__device__ inline bool inside(int pack) {
    return PACKS * THREADS * PACK == COLUMNS || column_of(pack) < COLUMNS;
}

__device__ inline void unpack(float* to, uint4 bits) {
    const unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // a bfloat16 is the upper half of a float
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

// This thread's part of a row, as it lies in memory; zeros beyond the row. once: nobody needs it
// again, so it goes past L1.
__device__ inline void fetch(uint4 (&to)[PACKS], const bf16* row, bool once = true) {
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        const uint4* from = (const uint4*)(row + column_of(k));
        to[k] = make_uint4(0, 0, 0, 0);
        if (inside(k))
            to[k] = once ? __ldcg(from) : __ldg(from);
    }
}

__device__ inline void write_row(bf16* row, const float (&v)[VALUES]) {
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        unsigned words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float* two = &v[k * PACK + 2 * i];
            __nv_bfloat162 both = __floats2bfloat162_rn(two[0], two[1]);
            words[i] = *(unsigned*)&both;
        }
        if (inside(k))
            __stcg((uint4*)(row + column_of(k)),
                   make_uint4(words[0], words[1], words[2], words[3]));
    }
}

// A float rounded to bfloat16 and back: what the next kernel will read.
__device__ inline float rounded(float v) {
    return __bfloat162float(__float2bfloat16(v));
}

// ---- sums over the row

// Adds two numbers over the block. Two places take turns, so one barrier a call is enough.
__device__ inline float2 sum_of_block(float2 v, int turn) {
    __shared__ float2 of_warps[2][WARPS];
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        v.x += __shfl_xor_sync(~0u, v.x, lanes);
        v.y += __shfl_xor_sync(~0u, v.y, lanes);
    }
    if (threadIdx.x % 32 == 0)
        of_warps[turn][threadIdx.x / 32] = v;
    __syncthreads();
    v = make_float2(0, 0);
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) {
        v.x += of_warps[turn][warp].x;
        v.y += of_warps[turn][warp].y;
    }
    return v;
}

// ---- the operations

__device__ inline float fast_tanh(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));  // one instruction, from Turing on
    return y;
}

constexpr float GELU_A = 0.7978845608f, GELU_B = 0.044715f;  // sqrt(2 / pi), and Hendrycks' b

__device__ inline float gelu(float u) {
    return 0.5f * u * (1 + fast_tanh(GELU_A * (u + GELU_B * u * u * u)));
}

__device__ inline float gelu_slope(float u) {
    float t = fast_tanh(GELU_A * (u + GELU_B * u * u * u));
    float inner = GELU_A * (1 + 3 * GELU_B * u * u);
    return 0.5f * (1 + t) + 0.5f * u * (1 - t * t) * inner;
}

// Dropout's factors of eight neighbours: 0, or 1 / (1 - p). 16 random bits decide on one.
// threshold: p * 65536.
__device__ inline void dropout(float (&factors)[PACK], long long first, unsigned long long seed,
                               unsigned threshold) {
    uint4 bits = philox(first / PACK, seed);
    const unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
    float kept = 65536.0f / (65536 - threshold);
#pragma unroll
    for (int i = 0; i < PACK; ++i) {
        unsigned sixteen = words[i / 2] >> i % 2 * 16 & 0xffff;
        factors[i] = sixteen < threshold ? 0 : kept;
    }
}
