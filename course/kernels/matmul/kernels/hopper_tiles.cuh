// What the Hopper rungs share: a step multiplies 128 x 64 numbers of A by 64 x 256 of B, and two
// warp groups have 64 rows each.
#pragma once
#include "hopper_instructions.cuh"

constexpr int BM = 128, BN = 256, BK = 64;
constexpr int BOX = 64;  // columns of a box: 128 bytes, the most that a swizzled row can hold

struct Stage {
    bf16 a[BM][BOX];
    bf16 b[BN / BOX][BK][BOX];  // four boxes side by side
};

// Asks for a step's tiles.
__device__ void load(Stage& s, const CUtensorMap* a, const CUtensorMap* b, barrier* full, int row,
                     int column, int k) {
    barrier_expect(full, sizeof(Stage));
    tma_load(s.a, a, full, k, row);
    for (int j = 0; j < BN / BOX; ++j)
        tma_load(s.b[j], b, full, column + j * BOX, k);
}

// Queues d (+)= this warp group's 64 rows of s.a times s.b.
__device__ void multiply(float (&d)[128], const Stage& s, int warpgroup, bool add) {
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
        descriptor a = tile_for_wgmma(&s.a[warpgroup * 64][k], 0);
        descriptor b = tile_for_wgmma(&s.b[0][k][0], sizeof s.b[0]);
        wgmma_64x256x16(d, a, b, add || k > 0);
    }
    wgmma_close_group();
}

// Two neighbours among a thread's sums, as bf16 in one register.
__device__ unsigned packed(const float* two) {
    __nv_bfloat162 both = __floats2bfloat162_rn(two[0], two[1]);
    return *(unsigned*)&both;
}

// A warp holds 16 rows: a lane two neighbours of row lane / 4, and two of the row 8 below, in each
// group of 8 columns.
__device__ void store(bf16* c, const float (&d)[128], int row, int column, int m, int n) {
    row += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    column += threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < BN / 8; ++j)
        for (int half = 0; half < 2; ++half) {
            int y = row + half * 8;
            int x = column + j * 8;
            if (y < m && x < n)
                *(unsigned*)(c + (size_t)y * n + x) = packed(&d[j * 4 + half * 2]);
        }
}
