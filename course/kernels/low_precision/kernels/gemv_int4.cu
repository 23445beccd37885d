// y = W x with weights of 4 bits, for one vector x (gemm_int4.cu: for more).
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
// And who knows the matrix that comes next may name it: a warp's last NEXT steps ask for as much of
// it into L2, so that memory has work while one kernel hands over to the other.
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
#ifndef ROOM
#define ROOM 1  // an SM has registers for the next kernel's blocks, too
#endif
#ifndef NEXT
#define NEXT DEPTH  // steps of the next matrix that a warp asks for
#endif

#define SHAPED __launch_bounds__(WARPS * 32, (1 + ROOM) * BLOCKS)

constexpr int TILE_SCALES = 2;  // of 16 bytes
constexpr int ROWS = TILES * TILE_ROWS;  // of a stripe

// What a warp multiplies at a time: tiles one below the other, and a group of x. Lane l has words l
// and l + 32 of a tile's codes, of row l / 4 and of the row 8 below; and word l / 4 of their
// scales. Of x it has the 32 numbers of quarter l % 4, eight to a word of 16 bytes.
struct Step {
    uint4 codes[TILES][TILE_LOADS];
    uint4 scales[TILES][TILE_SCALES];
    uint4 x[4][4];  // word, quarter
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

// A matrix as int4.py packs it.
struct Matrix {
    const uint4* codes;
    const uint4* scales;
    int groups;

    // Its t-th tile at a place.
    __device__ unsigned tile(Place at, int t) const {
        return (at.stripe * TILES + t) * groups + at.group;
    }
};

// ---- loads

// Starts copying a step's codes and scales.
__device__ void ask_for_weights(Step& step, const Matrix& matrix, Place at) {
    int lane = threadIdx.x % 32;
    const uint4* from = matrix.codes + (size_t)matrix.tile(at, 0) * TILE_LOADS + lane;
#pragma unroll
    for (int t = 0; t < TILES; ++t) {
        copy16(&step.codes[t][lane], from, true);
        copy16(&step.codes[t][lane + 32], from + 32, true);
        from += matrix.groups * TILE_LOADS;
    }
    int t = lane / TILE_SCALES;
    int half = lane % TILE_SCALES;
    if (t < TILES)
        copy16(&step.scales[t][half],
               matrix.scales + (size_t)matrix.tile(at, t) * TILE_SCALES + half, true);
}

// Starts copying a step's group of x. Past L1: other kernels write x while blocks of this one wait.
__device__ void ask_for_x(Step& step, const uint4* x, int group) {
    constexpr int WORDS = GROUP / 8;
    int word = threadIdx.x % 32;
    if (word < WORDS)
        copy16(&step.x[word % 4][word / 4], x + group * WORDS + word, true);
}

// Asks for a step's codes and scales into L2.
__device__ void ask_for_next(const Matrix& next, Place at) {
    int t = threadIdx.x % 32;
    if (t < TILES) {
        size_t tile = next.tile(at, t);
        prefetch(next.codes + tile * TILE_LOADS, TILE_LOADS * 16);
        prefetch(next.scales + tile * TILE_SCALES, TILE_SCALES * 16);
    }
}

// ---- from codes to sums

// A lane's 32 numbers of x.
struct Numbers {
    uint4 eight[4];

    __device__ Numbers(const Step& step) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            eight[i] = step.x[i][threadIdx.x % 4];
    }
    // The numbers that go with two pairs of codes, as mma takes them.
    __device__ void four(unsigned (&b)[2], int i, int half) const {
        b[0] = word(eight[i], half * 2);
        b[1] = word(eight[i], half * 2 + 1);
    }
};

// What 136 too much in every number of 128 columns adds to the sums, below zero. All eight columns
// of mma are x, and a lane keeps what it has of one: two rows.
__device__ void too_much(float (&sums)[2], const Numbers& x) {
    const unsigned of_all[4] = {0xc308c308, 0xc308c308, 0xc308c308, 0xc308c308};  // -136, -136
    float chains[2][4] = {};
    unsigned b[2];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        x.four(b, i / 2, i % 2);
        mma(chains[i % 2], of_all, b);
    }
    sums[0] = chains[0][0] + chains[1][0];
    sums[1] = chains[0][2] + chains[1][2];
}

// sums (of two rows) += scales * (mend + tile times a group of x). Two chains of products: one mma
// need not wait for the one before.
__device__ void multiply(float (&sums)[2], const Step& step, int t, const float (&mend)[2],
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
    sums[0] += lower(scales) * (chains[0][0] + chains[1][0] + mend[0]);
    sums[1] += upper(scales) * (chains[0][2] + chains[1][2] + mend[1]);
}

// Adds up what the block's warps have of a stripe, and writes y.
__device__ void add_warps(bf16* y, const float (&sums)[TILES][2], int stripe) {
    __shared__ float of_warps[WARPS][ROWS];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    __syncthreads();  // all have read the stripe before
    if (lane % 4 == 0)
        for (int t = 0; t < TILES; ++t)
            for (int i = 0; i < 2; ++i)
                of_warps[warp][t * TILE_ROWS + lane / 4 + i * 8] = sums[t][i];
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS; i += WARPS * 32) {
        float sum = 0;
        for (int w = 0; w < WARPS; ++w)
            sum += of_warps[w][i];
        y[stripe * ROWS + i] = __float2bfloat16(sum);
    }
}

// rows: a multiple of 16 * TILES. k: columns, a multiple of 128. next_codes and next_scales: of a
// matrix of the same size, or null.
__global__ void SHAPED gemv_int4(bf16* y, const uint4* codes, const uint4* scales, const bf16* x,
                                 const uint4* next_codes, const uint4* next_scales, int rows,
                                 int k) {
    extern __shared__ __align__(128) unsigned char raw[];
    int warp = threadIdx.x / 32;
    Step* ring = (Step*)raw + warp * DEPTH;
    const uint4* words_of_x = (const uint4*)x;
    int groups = k / GROUP;
    int stripes = rows / ROWS;
    Matrix matrix = {codes, scales, groups};
    Matrix next = {next_codes, next_scales, groups};
    let_next_begin();
    const Place first = {(int)blockIdx.x, warp};
    Place ahead = first;
    for (int d = 0; d < DEPTH; ++d) {
        if (ahead.any(stripes, groups))
            ask_for_weights(ring[d], matrix, ahead);
        close_group();
        ahead.next(groups);
    }
    wait_for_kernel_before();
    ahead = first;
    for (int d = 0; d < DEPTH; ++d) {
        if (ahead.any(stripes, groups))
            ask_for_x(ring[d], words_of_x, ahead.group);
        close_group();
        ahead.next(groups);
    }
    int own_stripes = (stripes - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
    int left = own_stripes * ((groups - warp + WARPS - 1) / WARPS);  // steps of this warp
    Place of_next = first;
    int slot = 0;
    for (int stripe = blockIdx.x; stripe < stripes; stripe += gridDim.x) {
        float sums[TILES][2] = {};
#pragma unroll 2
        for (int group = warp; group < groups; group += WARPS) {
            wait_for_groups<DEPTH - 1>();
            __syncwarp();  // what other lanes have copied is there
            Numbers numbers(ring[slot]);
            float mend[2];
            too_much(mend, numbers);
#pragma unroll
            for (int t = 0; t < TILES; ++t)
                multiply(sums[t], ring[slot], t, mend, numbers);
            __syncwarp();  // all have read the step that is overwritten
            if (ahead.any(stripes, groups)) {
                ask_for_weights(ring[slot], matrix, ahead);
                ask_for_x(ring[slot], words_of_x, ahead.group);
            }
            close_group();
            ahead.next(groups);
            if (next_codes && left-- <= NEXT) {
                ask_for_next(next, of_next);
                of_next.next(groups);
            }
            slot = slot + 1 == DEPTH ? 0 : slot + 1;
        }
        add_warps(y, sums, stripe);
    }
}
