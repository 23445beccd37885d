// y = W x with weights of 4 bits, for one vector x. It takes more, but gemm_int4.cu is faster then.
//
// W lies as the tensor cores take it (int4.py packs it): tiles of 16 rows and 128 columns, which
// are 1,024 bytes. A warp's load is 512 bytes in one piece, and a lane finds in its 16 bytes just
// the numbers that it must hand to mma: eight products of 16 x 16 and 16 x 8 from two loads. Every
// 128 columns of a row have a scale of their own, which multiplies their sum, once.
//
// A block stays: it takes stripe after stripe of TILES rows of tiles, its warps every WARPS-th tile
// of each. Each warp has a ring of DEPTH steps in shared memory, which is refilled all the time,
// also while a stripe's sums are added up. What a step needs of x comes through the ring, too: no
// product waits for a load of its own.
//
// Weights depend on no kernel before this one: if the launch allows it, their loads begin while
// that one still runs, and only x is waited for (programmatic dependent launch, Hopper and later).
// Grid: at most a block a stripe, block: 32 * WARPS threads, dynamic shared memory: the rings.
#include "int4.cuh"

#ifndef TILES
#define TILES 4
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef DEPTH
#define DEPTH 3
#endif
#ifndef BLOCKS
#define BLOCKS 1  // of an SM at a time
#endif
#ifndef VECTORS
#define VECTORS 1  // at most, 1 to 8
#endif
#ifndef LATE
#define LATE 0  // the next kernel may begin when a block asks for its last stripe, not at once
#endif

#ifndef ROOM
#define ROOM 1  // an SM has registers for the next kernel's blocks, too
#endif

#define SHAPED __launch_bounds__(WARPS * 32, (1 + ROOM) * BLOCKS)

constexpr int TILE_SCALES = 2;  // of 16 bytes
constexpr int ROWS = TILES * TILE_ROWS;  // of a stripe

// What a warp multiplies at a time: tiles one below the other, and a group of the vectors. Lane l
// has words l and l + 32 of a tile's codes, of row l / 4 and of the row 8 below, and word l / 4 of
// their scales. Of vector l / 4 it has the 32 numbers of quarter l % 4, eight to a word of 16
// bytes.
struct Step {
    uint4 codes[TILES][TILE_LOADS];
    uint4 scales[TILES][TILE_SCALES];
    uint4 x[4][VECTORS][4];  // word, vector, quarter
};

// Where in the matrix a warp is.
struct Place {
    int stripe, group;

    __device__ bool any(int stripes, int groups) const {
        return stripe < stripes && group < groups;
    }
    __device__ void next(int groups) {
        group += WARPS;
        if (group >= groups) {
            group = threadIdx.x / 32;
            stripe += gridDim.x;
        }
    }
};

// ---- loads

// Starts copying a step's tiles and scales.
__device__ void ask_for_weights(Step& step, const uint4* codes, const uint4* scales, Place at,
                                int groups) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < TILES; ++t) {
        unsigned tile = (at.stripe * TILES + t) * groups + at.group;
        const uint4* from = codes + (size_t)tile * TILE_LOADS + lane;
        copy16(&step.codes[t][lane], from, true);
        copy16(&step.codes[t][lane + 32], from + 32, true);
        if (lane < TILE_SCALES)
            copy16(&step.scales[t][lane], scales + (size_t)tile * TILE_SCALES + lane, true);
    }
}

// Starts copying a step's group of the vectors. Past L1: other kernels write x while blocks of this
// one wait.
__device__ void ask_for_x(Step& step, const bf16* vectors, int group, int groups, int count) {
    constexpr int WORDS = GROUP / 8;
#pragma unroll
    for (int i = threadIdx.x % 32; i < WORDS * VECTORS; i += 32) {
        int vector = i / WORDS;
        int word = i % WORDS;
        if (vector < count)
            copy16(&step.x[word % 4][vector][word / 4],
                   vectors + ((size_t)vector * groups + group) * GROUP + word * 8, true);
    }
}

// ---- from codes to sums

// A lane's 32 numbers of its vector.
struct Numbers {
    uint4 eight[4];

    __device__ Numbers(const Step& step, int vector) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            eight[i] = step.x[i][vector][threadIdx.x % 4];
    }
    // The numbers that go with two pairs of codes, as mma takes them.
    __device__ void four(unsigned (&b)[2], int i, int half) const {
        b[0] = word(eight[i], half * 2);
        b[1] = word(eight[i], half * 2 + 1);
    }
};

// What 136 too much in every number of 128 columns adds to the sums, below zero.
__device__ void too_much(float (&sums)[4], const Numbers& x) {
    const unsigned of_all[4] = {0xc308c308, 0xc308c308, 0xc308c308, 0xc308c308};  // -136, -136
    float chains[2][4] = {};
    unsigned b[2];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        x.four(b, i / 2, i % 2);
        mma(chains[i % 2], of_all, b);
    }
    for (int i = 0; i < 4; ++i)
        sums[i] = chains[0][i] + chains[1][i];
}

// sums (16 x 8) += scales * (mend + tile times a group of the vectors). Two chains of products: one
// mma need not wait for the one before.
__device__ void multiply(float (&sums)[4], const Step& step, int t, const float (&mend)[4],
                         const Numbers& x) {
    int lane = threadIdx.x % 32;
    uint4 upper_row = step.codes[t][lane];
    uint4 lower_row = step.codes[t][lane + 32];
    unsigned scales = ((const unsigned*)step.scales[t])[lane / 4];
    float chains[2][4] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {  // four of a lane's eight codes in a word to a product
        unsigned a[4];
        unsigned b[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            int shift = (i % 2 * 2 + j) * 4;
            a[j * 2] = two_numbers(word(upper_row, i / 2), shift);
            a[j * 2 + 1] = two_numbers(word(lower_row, i / 2), shift);
        }
        x.four(b, i / 2, i % 2);
        mma(chains[i % 2], a, b);
    }
    for (int i = 0; i < 4; ++i) {
        float scale = i < 2 ? lower(scales) : upper(scales);
        sums[i] += scale * (chains[0][i] + chains[1][i] + mend[i]);
    }
}

// Adds up what the block's warps have of a stripe, and writes y[vector][row].
__device__ void add_warps(bf16* y, const float (&sums)[TILES][4], int stripe, int rows, int count) {
    __shared__ float of_warps[WARPS][ROWS][COLUMNS];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    __syncthreads();  // all have read the stripe before
    for (int t = 0; t < TILES; ++t)
        for (int i = 0; i < 4; ++i)
            of_warps[warp][t * TILE_ROWS + lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = sums[t][i];
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * count; i += WARPS * 32) {
        float sum = 0;
        for (int w = 0; w < WARPS; ++w)
            sum += of_warps[w][i % ROWS][i / ROWS];
        y[(size_t)(i / ROWS) * rows + stripe * ROWS + i % ROWS] = __float2bfloat16(sum);
    }
}

// rows: a multiple of 16 * TILES. k: columns, a multiple of 128. count: vectors, at most VECTORS.
__global__ void SHAPED gemv_int4(bf16* y, const uint4* codes, const uint4* scales,
                                 const bf16* vectors, int rows, int k, int count) {
    extern __shared__ __align__(128) unsigned char raw[];
    int warp = threadIdx.x / 32;
    Step* ring = (Step*)raw + warp * DEPTH;
    int groups = k / GROUP;
    int stripes = rows / ROWS;
    if (!LATE)
        let_next_begin();
    const Place first = {(int)blockIdx.x, warp};
    Place ahead = first;
    for (int d = 0; d < DEPTH; ++d) {
        if (ahead.any(stripes, groups))
            ask_for_weights(ring[d], codes, scales, ahead, groups);
        close_group();
        ahead.next(groups);
    }
    wait_for_kernel_before();
    ahead = first;
    for (int d = 0; d < DEPTH; ++d) {
        if (ahead.any(stripes, groups))
            ask_for_x(ring[d], vectors, ahead.group, groups, count);
        close_group();
        ahead.next(groups);
    }
    int vector = min(threadIdx.x % 32 / 4, VECTORS - 1);
    int slot = 0;
    for (int stripe = blockIdx.x; stripe < stripes; stripe += gridDim.x) {
        if (LATE && warp == 0 && stripe + (int)gridDim.x >= stripes)
            let_next_begin();
        float sums[TILES][4] = {};
#pragma unroll 2
        for (int group = warp; group < groups; group += WARPS) {
            wait_for_groups<DEPTH - 1>();
            __syncwarp();  // what other lanes have copied is there
            Numbers x(ring[slot], vector);
            float mend[4];
            too_much(mend, x);
#pragma unroll
            for (int t = 0; t < TILES; ++t)
                multiply(sums[t], ring[slot], t, mend, x);
            __syncwarp();  // all have read the step that is overwritten
            if (ahead.any(stripes, groups)) {
                ask_for_weights(ring[slot], codes, scales, ahead, groups);
                ask_for_x(ring[slot], vectors, ahead.group, groups, count);
            }
            close_group();
            ahead.next(groups);
            slot = slot + 1 == DEPTH ? 0 : slot + 1;
        }
        add_warps(y, sums, stripe, rows, count);
    }
}
