// The parts of a tuned matrix product.
// The sizes may come from outside, all of them together: -DBM=64 -DBN=64 ...
#pragma once
#include "copy.cuh"
#include "four.cuh"

#ifndef BM
#define BM 128  // the block's tile of C: BM x BN
#define BN 256
#define BK 32  // k is walked BK at a time
#define WM 32  // the warp's tile: WM x WN
#define WN 128
#define TM 8  // the thread's tile: TM x TN
#define TN 16
#define STAGES 3  // pairs of tiles of A and B in shared memory
#define BLOCKS 1  // blocks that an SM should have room for: limits the registers a thread
#endif
// What the rungs measure one by one:
#ifndef AHEAD
#define AHEAD 1  // the values of the next step are read while this one is multiplied
#endif
#ifndef TO_AND_FRO
#define TO_AND_FRO 1  // every other row of products goes from right to left
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int LANES_Y = WM / TM, LANES_X = WN / TN;
constexpr int PITCH_A = BM + 4;  // floats a row of A's tile, which is turned and padded
constexpr int TILE_A = BK * PITCH_A, STAGE = TILE_A + BK * BN;
static_assert(LANES_Y * LANES_X == 32, "a warp's lanes are 32 threads");
static_assert(LANES_Y == 8 || LANES_X == 8, "they form 8 x 4 or 4 x 8");
static_assert(TM % 4 == 0 && TN % 4 == 0, "values are read by fours");
static_assert(BK % 2 == 0, "steps are done by twos");
static_assert(BM * BK % THREADS == 0 && THREADS % BK == 0, "copies of A come out even");
static_assert(BK * BN % (4 * THREADS) == 0, "copies of B come out even");
static_assert(4 * THREADS % BN == 0, "a thread copies four columns of B");
extern __shared__ float4 shared_memory[];  // STAGES * STAGE floats

struct Matrices {
    const float *a, *b;
    int m, n, k;
};

// A block's work: the tile of C at (row, col), the sums from k_begin to k_end.
// whole: no part of the tile lies outside C, and rows of B and C start at multiples of 16 bytes.
struct Work {
    int row, col, k_begin, k_end;
    bool whole;
};

__device__ bool is_whole(const Matrices& in, const float* c, int row, int col) {
    bool aligned = in.n % 4 == 0 && ((size_t)in.b | (size_t)c) % 16 == 0;
    return row + BM <= in.m && col + BN <= in.n && aligned;
}

// ---- copies

// A whole pair of tiles: a thread copies elements of one column of A, and of four columns of B.
// Its addresses move by constants, and nothing is tested.
__device__ void start_whole(float* stage, const Matrices& in, const Work& work, int k0) {
    constexpr int A_ROWS = THREADS / BK, B_ROWS = 4 * THREADS / BN;
    int y = threadIdx.x / BK, x = threadIdx.x % BK;
    const float* from = in.a + (size_t)(work.row + y) * in.k + k0 + x;
#pragma unroll
    for (int i = 0; i < BM; i += A_ROWS, from += (size_t)A_ROWS * in.k)
        copy<1>(stage + x * PITCH_A + y + i, from, true);
    y = threadIdx.x / (BN / 4), x = threadIdx.x % (BN / 4) * 4;
    from = in.b + (size_t)(k0 + y) * in.n + work.col + x;
#pragma unroll
    for (int i = 0; i < BK; i += B_ROWS, from += (size_t)B_ROWS * in.n)
        copy<4>(stage + TILE_A + (y + i) * BN + x, from, true);
}

// A pair of tiles of which parts lie outside: element by element, zeros for what is outside.
__device__ void start_parts(float* stage, const Matrices& in, const Work& work, int k0) {
    for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
        int y = work.row + i / BK, x = k0 + i % BK;
        bool inside = y < in.m && x < work.k_end;
        copy<1>(stage + i % BK * PITCH_A + i / BK, in.a + (size_t)y * in.k + x, inside);
    }
    for (int i = threadIdx.x; i < BK * BN; i += THREADS) {
        int y = k0 + i / BN, x = work.col + i % BN;
        bool inside = y < work.k_end && x < in.n;
        copy<1>(stage + TILE_A + i, in.b + (size_t)y * in.n + x, inside);
    }
}

// Starts the copies of the pair of tiles from k0 on, if there is one.
__device__ void start_copies(float* stage, const Matrices& in, const Work& work, int k0) {
    if (work.whole && k0 + BK <= work.k_end)
        start_whole(stage, in, work, k0);
    else if (k0 < work.k_end)
        start_parts(stage, in, work, k0);
    close_group();
}

// ---- a step along k, in registers

struct alignas(16) Step {  // read by fours
    float a[TM], b[TN];
};

__device__ void read_step(Step& step, const float* from_a, const float* from_b) {
#pragma unroll
    for (int y = 0; y < TM; y += 4)
        four(step.a[y]) = *(const float4*)(from_a + y * LANES_Y);
#pragma unroll
    for (int x = 0; x < TN; x += 4)
        four(step.b[x]) = *(const float4*)(from_b + x * LANES_X);
}

// To and fro: each multiplication finds one of its two factors where the one before left it, so
// that it has to read only two of its three operands from the register file.
__device__ void add_products(float (&sum)[TM][TN], const Step& step) {
#pragma unroll
    for (int y = 0; y < TM; y++)
#pragma unroll
        for (int i = 0; i < TN; i++) {
            int x = TO_AND_FRO && y % 2 ? TN - 1 - i : i;
            sum[y][x] += step.a[y] * step.b[x];
        }
}

// Row and column, within the block's tile, of this thread's first element.
// Its elements are groups of 4 x 4, LANES_Y groups of rows and LANES_X groups of columns apart.
struct Corner {
    int row, col;
};
__device__ Corner thread_corner() {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int of_8 = lane / 2 % 8, of_4 = lane % 2 + lane / 16 * 2;  // neighbours share one or the other
    int y = LANES_Y == 8 ? of_8 : of_4, x = LANES_Y == 8 ? of_4 : of_8;
    return {warp / (BN / WN) * WM + y * 4, warp % (BN / WN) * WN + x * 4};
}

// ---- the sums of a block's work

// As in rung 9: read a step's values, multiply them, read the next step's.
__device__ void multiply_in_turn(float (&sum)[TM][TN], const Matrices& in, const Work& work) {
    float* shared = (float*)shared_memory;
    Corner corner = thread_corner();
    for (int s = 0; s < STAGES - 1; s++)
        start_copies(shared + s * STAGE, in, work, work.k_begin + s * BK);
    int reading = 0, writing = STAGES - 1;
#pragma unroll 1
    for (int k0 = work.k_begin; k0 < work.k_end; k0 += BK) {
        wait_for_groups<STAGES - 2>();  // this thread's copies of the oldest pair have arrived,
        __syncthreads();  // everyone's have, and the pair before is no longer read
        start_copies(shared + writing * STAGE, in, work, k0 + (STAGES - 1) * BK);
        const float* from_a = shared + reading * STAGE + corner.row;
        const float* from_b = shared + reading * STAGE + TILE_A + corner.col;
        reading = (reading + 1) % STAGES, writing = (writing + 1) % STAGES;
#pragma unroll 8
        for (int i = 0; i < BK; i++) {
            Step step;
            read_step(step, from_a + i * PITCH_A, from_b + i * BN);
            add_products(sum, step);
        }
    }
}

// Registers ahead: while one step's values are multiplied, the next one's are being read.
__device__ void multiply_ahead(float (&sum)[TM][TN], const Matrices& in, const Work& work) {
    float* shared = (float*)shared_memory;
    for (int s = 0; s < STAGES - 1; s++)
        start_copies(shared + s * STAGE, in, work, work.k_begin + s * BK);
    wait_for_groups<STAGES - 2>();  // this thread's copies of the first pair of tiles have arrived,
    __syncthreads();  // and everyone's
    Corner corner = thread_corner();
    const float *tile_a = shared + corner.row, *tile_b = shared + TILE_A + corner.col;
    Step even, odd;
    if (work.k_begin < work.k_end)
        read_step(even, tile_a, tile_b);
    int reading = 0, writing = STAGES - 1;
#pragma unroll 1
    for (int k0 = work.k_begin; k0 < work.k_end; k0 += BK) {
        start_copies(shared + writing * STAGE, in, work, k0 + (STAGES - 1) * BK);
        writing = (writing + 1) % STAGES;
        const float *from_a = tile_a + reading * STAGE, *from_b = tile_b + reading * STAGE;
#pragma unroll 1  // a short loop: the compiler then keeps each sum in one register
        for (int i = 0; i < BK - 2; i += 2) {
            read_step(odd, from_a + PITCH_A, from_b + BN);
            add_products(sum, even);
            from_a += 2 * PITCH_A, from_b += 2 * BN;
            read_step(even, from_a, from_b);
            add_products(sum, odd);
        }
        read_step(odd, from_a + PITCH_A, from_b + BN);
        add_products(sum, even);
        wait_for_groups<STAGES - 2>();
        __syncthreads();  // the next pair of tiles is complete, and nobody reads this one any more
        reading = (reading + 1) % STAGES;
        if (k0 + BK < work.k_end)
            read_step(even, tile_a + reading * STAGE, tile_b + reading * STAGE);
        add_products(sum, odd);
    }
}

__device__ void multiply_tiles(float (&sum)[TM][TN], const Matrices& in, const Work& work) {
    if constexpr (AHEAD)
        multiply_ahead(sum, in, work);
    else
        multiply_in_turn(sum, in, work);
}

// ---- results

// Hands the thread's sums with their places in C to `put(where, four values, count)`.
template <class Put>
__device__ void for_each_four(const float (&sum)[TM][TN], const Matrices& in, const Work& work,
                              Put put) {
    Corner corner = thread_corner();
#pragma unroll
    for (int y = 0; y < TM; y++)
#pragma unroll
        for (int x = 0; x < TN; x += 4) {
            int row = work.row + corner.row + y / 4 * 4 * LANES_Y + y % 4;
            int col = work.col + corner.col + x * LANES_X;
            if (row < in.m && col < in.n)
                put((size_t)row * in.n + col, &sum[y][x], min(4, in.n - col));
        }
}

// As in BLAS, the sums get a factor. It also leaves the compiler free in where it keeps them: sums
// that are stored as they are, four at once, must be neighbours among the registers.
__constant__ float alpha = 1.0f;

__device__ void store_tile(float* c, const float (&sum)[TM][TN], const Matrices& in,
                           const Work& work) {
    for_each_four(sum, in, work, [&](size_t where, const float* s, int count) {
        if (work.whole)
            *(float4*)(c + where) = float4{alpha * s[0], alpha * s[1], alpha * s[2], alpha * s[3]};
        else
            for (int i = 0; i < count; i++)
                c[where + i] = alpha * s[i];
    });
}
