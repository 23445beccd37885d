// What a product is made of on Hopper, whatever its numbers: a step is as deep as 128 bytes hold,
// and its tiles lie in shared memory as the copy engine swizzles them and wgmma reads them.
// KIND: of the numbers. B_ALONG_K: B is stored as n x k, as torch.nn.Linear has its weights; else
// as k x n, which wgmma takes of 16-bit numbers only.
#pragma once
#include <cuda_fp16.h>
#include "hopper_instructions.cuh"

#define BF16 0
#define FP16 1
#define TF32 2
#define FP8 3
#ifndef KIND
#define KIND BF16
#endif
#ifndef B_ALONG_K
#define B_ALONG_K (KIND >= TF32)
#endif
static_assert(B_ALONG_K || KIND < TF32, "rows of B along n: of 16-bit numbers only");

#if KIND == BF16
using number = bf16;
using result = bf16;
#define PRODUCT "k16.f32.bf16.bf16 {"
#elif KIND == FP16
using number = half;
using result = half;
#define PRODUCT "k16.f32.f16.f16 {"
#elif KIND == TF32
using number = float;
using result = float;
#define PRODUCT "k8.f32.tf32.tf32 {"
#else
using number = unsigned char;  // e4m3
using result = bf16;
#define PRODUCT "k32.f32.e4m3.e4m3 {"
#endif

#if KIND >= TF32
#define HOW "p, 1, 1; }"
#elif B_ALONG_K
#define HOW "p, 1, 1, 0, 0; }"
#else
#define HOW "p, 1, 1, 0, 1; }"
#endif

constexpr int LINE = 128;  // bytes of a swizzled row
constexpr int BK = LINE / sizeof(number);
constexpr int DEEP = 32 / sizeof(number);  // a product's depth: 32 bytes
constexpr int BOX = LINE / sizeof(result);  // columns of C in a box

// Made by the host (matmul/maps.py); as CUtensorMap, but passed as a plain struct.
struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// ---- wgmma, one function a width: d (+)= a b, a with 64 rows

#define MULTIPLY(WIDTH, COUNT, SUMS, A, B, ADD, ...)                                        \
    __device__ inline void wgmma(float (&d)[COUNT], descriptor a, descriptor b, int add) {  \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #ADD                                \
                     ", 0; wgmma.mma_async.sync.aligned.m64n" #WIDTH PRODUCT SUMS "}, %" #A \
                     ", %" #B ", " HOW                                                      \
                     : __VA_ARGS__                                                          \
                     : "l"(a), "l"(b), "r"(add));                                           \
    }
MULTIPLY(64, 32, SUMS_32, 32, 33, 34, F32(0))
MULTIPLY(128, 64, SUMS_64, 64, 65, 66, F64(0))
MULTIPLY(192, 96, SUMS_96, 96, 97, 98, F64(0), F32(64))
MULTIPLY(256, 128, SUMS_128, 128, 129, 130, F64(0), F64(64))

// ---- a step's tiles

template <int ROWS, int COLUMNS>
struct StageOf {
    number a[ROWS][BK];
#if B_ALONG_K
    number b[COLUMNS][BK];
#else
    number b[COLUMNS / BOX][BK][BOX];  // boxes side by side
#endif
};

// Where a tile of C begins, and in which matrix of a batch.
struct Place {
    int row, column, matrix;
};

__device__ inline void load_box(void* to, const TensorMap* map, barrier* b, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z)
        : "memory");
}

__device__ inline void load_box_to_both(void* to, const TensorMap* map, barrier* b, int x, int y,
                                        int z) {
    unsigned short blocks = 0b11;
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
}

__device__ inline void store_box(const TensorMap* map, const void* from, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
            map),
        "r"(shared_address(from)), "r"(x), "r"(y), "r"(z)
        : "memory");
}

__device__ inline void fetch_map(const TensorMap* map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Asks for a step's tiles: the block's own of A, and of B its part for all blocks of the cluster.
template <int SHARERS, int ROWS, int COLUMNS>
__device__ void load(StageOf<ROWS, COLUMNS>& s, const TensorMap* a, const TensorMap* b,
                     barrier* full, Place at, int k) {
    barrier_expect(full, sizeof s);
    load_box(s.a, a, full, k, at.row, at.matrix);
    if (SHARERS == 1) {
#if B_ALONG_K
        load_box(s.b, b, full, k, at.column, at.matrix);
#else
#pragma unroll
        for (int j = 0; j < COLUMNS / BOX; ++j)
            load_box(s.b[j], b, full, at.column + j * BOX, k, at.matrix);
#endif
    } else {
#if B_ALONG_K
        int first = cluster_rank() * (COLUMNS / 2);
        load_box_to_both(s.b[first], b, full, k, at.column + first, at.matrix);
#else
        constexpr int MANY = COLUMNS / BOX;
        if (MANY % 2) {  // half of each box
            int first = cluster_rank() * (BK / 2);
            for (int j = 0; j < MANY; ++j)
                load_box_to_both(s.b[j][first], b, full, at.column + j * BOX, k + first, at.matrix);
        } else {
            int first = cluster_rank() * (MANY / 2);
            for (int j = first; j < first + MANY / 2; ++j)
                load_box_to_both(s.b[j], b, full, at.column + j * BOX, k, at.matrix);
        }
#endif
    }
}

// Queues d (+)= rows of s.a, from `row` on, times s.b.
template <int PARTS, int SUMS, int ROWS, int COLUMNS>
__device__ void multiply(float (&d)[PARTS][SUMS], const StageOf<ROWS, COLUMNS>& s, int row,
                         bool add) {
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < BK; k += DEEP) {
#if B_ALONG_K
        descriptor b = tile_for_wgmma(&s.b[0][k], 0);
#else
        descriptor b = tile_for_wgmma(&s.b[0][k][0], sizeof s.b[0]);
#endif
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            descriptor a = tile_for_wgmma(&s.a[row + part * 64][k], 0);
            wgmma(d[part], a, b, add || k > 0);
        }
    }
    wgmma_close_group();
}

// ---- results: in each group of 8 columns a lane has two neighbours of row lane / 4, and two of
// the row 8 below, of the 16 rows of its warp

__device__ inline int own_row() {
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
}

__device__ inline result rounded(float x) {
#if KIND == FP16
    return __float2half_rn(x);
#elif KIND == TF32
    return x;
#else
    return __float2bfloat16(x);
#endif
}

// Two neighbours in one register, or of float32 in two.
__device__ inline unsigned packed(float first, float second) {
#if KIND == FP16
    __half2 both = __floats2half2_rn(first, second);
#else
    __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
#endif
    return *(unsigned*)&both;
}

// Factors of rows and columns, of 8-bit floats only; nullptr: none.
struct Scales {
    const float* a;
    const float* b;
};

__device__ inline float factor(const float* scales, int i, int end, int matrix) {
    if (KIND != FP8 || !scales || i >= end)
        return 1;
    return __ldg(scales + (size_t)matrix * end + i);
}
