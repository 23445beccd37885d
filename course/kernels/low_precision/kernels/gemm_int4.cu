// y = W x with weights of 4 bits, for up to 8 vectors x at a time. For one alone: gemv_int4.cu.
//
// A block has TILES rows of tiles. Its warps take every WARPS-th tile of each; the loads of the
// next DEPTH tiles are always on their way, in registers. x is read through L1, which the blocks of
// an SM share. Weights, and the kernel before this one: as in gemv_int4.cu.
// Grid: rows / (16 * TILES), block: 32 * WARPS threads.
#include "int4.cuh"

#ifndef TILES
#define TILES 1
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef DEPTH
#define DEPTH 4
#endif
#ifndef BLOCKS
#define BLOCKS 4  // of an SM at a time
#endif

#define SHAPED __launch_bounds__(WARPS * 32, BLOCKS)

// What a lane has of one tile: codes of row lane / 4 and of the row 8 below, and their two scales.
struct Tile {
    uint4 codes[2];
    unsigned scales;
};

__device__ Tile load_tile(const uint4* codes, const unsigned* scales, size_t tile) {
    int lane = threadIdx.x % 32;
    const uint4* from = codes + tile * TILE_LOADS + lane;
    return {{__ldcs(from), __ldcs(from + 32)}, scales[tile * 8 + lane / 4]};
}

// Two codes as the two bfloat16 that they stand for. Written behind the upper bits of 128.0, a code
// c makes 128 + c, since neighbours are 1 apart there; and a code is its number plus 8.
__device__ unsigned exact_numbers(unsigned codes, int shift) {
    unsigned bits = (codes >> shift & 0x000f000f) | 0x43004300;
    __nv_bfloat162 both = __hsub2(*(__nv_bfloat162*)&bits, __floats2bfloat162_rn(136, 136));
    return *(unsigned*)&both;
}

// sums (16 x 8) += scales * (tile times a group of the vectors). x: where this lane's 32 values of
// the group begin, or null if its vector is none.
__device__ void multiply(float (&sums)[4], const Tile& tile, const uint4* x) {
    float group[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        uint4 eight = x ? x[i] : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int half = 0; half < 2; ++half) {  // four of a lane's eight codes to a product
            unsigned a[4];
            unsigned b[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                int pair = half * 2 + j;
                a[j * 2] = exact_numbers(word(tile.codes[0], i), pair * 4);
                a[j * 2 + 1] = exact_numbers(word(tile.codes[1], i), pair * 4);
                b[j] = word(eight, pair);
            }
            mma(group, a, b);
        }
    }
    sums[0] += lower(tile.scales) * group[0];
    sums[1] += lower(tile.scales) * group[1];
    sums[2] += upper(tile.scales) * group[2];
    sums[3] += upper(tile.scales) * group[3];
}

// Adds up what the block's warps have, and writes y[vector][row].
__device__ void add_warps(bf16* y, const float (&sums)[TILES][4], int rows, int count) {
    __shared__ float of_warps[WARPS][TILES * TILE_ROWS][COLUMNS];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    for (int t = 0; t < TILES; ++t)
        for (int i = 0; i < 4; ++i)
            of_warps[warp][t * TILE_ROWS + lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = sums[t][i];
    __syncthreads();
    constexpr int ROWS = TILES * TILE_ROWS;
    for (int i = threadIdx.x; i < ROWS * count; i += WARPS * 32) {
        float sum = 0;
        for (int w = 0; w < WARPS; ++w)
            sum += of_warps[w][i % ROWS][i / ROWS];
        y[(size_t)(i / ROWS) * rows + blockIdx.x * ROWS + i % ROWS] = __float2bfloat16(sum);
    }
}

// rows: a multiple of 16 * TILES. k: columns, a multiple of 128. count: vectors, at most 8.
__global__ void SHAPED gemm_int4(bf16* y, const uint4* codes, const unsigned* scales,
                                 const bf16* vectors, int rows, int k, int count) {
    let_next_begin();
    int groups = k / GROUP;
    int warp = threadIdx.x / 32;
    size_t first = (size_t)blockIdx.x * TILES * groups;
    Tile tiles[DEPTH][TILES];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d)
        for (int t = 0; t < TILES; ++t)
            if (warp + d * WARPS < groups)
                tiles[d][t] = load_tile(codes, scales, first + t * groups + warp + d * WARPS);
    wait_for_kernel_before();
    int lane = threadIdx.x % 32;
    const bf16* x = lane / 4 < count ? vectors + (size_t)(lane / 4) * k + lane % 4 * 32 : nullptr;
    float sums[TILES][4] = {};
    for (int start = warp; start < groups; start += DEPTH * WARPS)
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) {
            int group = start + d * WARPS;
            if (group >= groups)
                break;
            int next = group + DEPTH * WARPS;
#pragma unroll
            for (int t = 0; t < TILES; ++t) {
                multiply(sums[t], tiles[d][t], x ? (const uint4*)(x + group * GROUP) : nullptr);
                if (next < groups)
                    tiles[d][t] = load_tile(codes, scales, first + t * groups + next);
            }
        }
    add_warps(y, sums, rows, count);
}
