// y = W x with weights of 4 bits, for one vector x (gemm_int4.cu: for more).
//
// W lies as the tensor cores take it (int4.py packs it): tiles of 16 rows and 128 columns, which
// are 1,024 bytes. A warp's load is 512 bytes in one piece, and a lane finds in its 16 bytes just
// the numbers that it must hand to mma: four products of 16 x 32 and 32 x 8 from two loads. They
// are products of whole numbers: of four codes a shift and one instruction make four. Every 128
// columns of a row have a scale of their own, which multiplies their sum, once.
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
#ifndef ROOM
#define ROOM 1  // an SM has registers for the next kernel's blocks, too
#endif

#define SHAPED __launch_bounds__(WARPS * 32, (1 + ROOM) * BLOCKS)

constexpr int TILE_SCALES = 2;  // of 16 bytes
constexpr int ROWS = TILES * TILE_ROWS;  // of a stripe

// What a warp multiplies at a time: tiles one below the other, and a group of x. Lane l has words l
// and l + 32 of a tile's codes, of row l / 4 and of the row 8 below; and word l / 4 of their
// scales. Of x it needs the 32 numbers of quarter l % 4.
struct Step {
    uint4 codes[TILES][TILE_LOADS];
    uint4 scales[TILES][TILE_SCALES];
    unsigned x[GROUP / 2];  // pairs of bfloat16
};

// A group of x as whole numbers: unit * (256 * upper byte + lower byte). Words as mma takes them.
struct WholeNumbers {
    uint4 words[2][2][4];  // sixteen numbers of a quarter, which byte, quarter
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
        copy16(&step.x[word * 4], x + group * WORDS + word, true);
}

// ---- x as whole numbers

// One byte of each of four words.
template <int BYTE>
__device__ unsigned byte_of_each(const unsigned (&words)[4]) {
    constexpr int PAIR = (4 + BYTE) << 4 | BYTE;
    unsigned first = __byte_perm(words[0], words[1], PAIR);
    unsigned second = __byte_perm(words[2], words[3], PAIR);
    return __byte_perm(first, second, 0x5410);
}

// The largest magnitude becomes 2^13 or more, but less than 2^14; or less, if it is below 2^-113.
// Others lose half a unit at most. Returns the unit, NaN if x holds infinity or NaN. Lane l takes
// four numbers of word l / 2: two pairs, with one pair in between.
__device__ float to_whole_numbers(WholeNumbers& to, const Step& step) {
    constexpr float SHIFT = 3 << 22;  // a float so large has no bits behind the point
    int lane = threadIdx.x % 32;
    int at = lane / 2;
    int half = lane % 2;
    unsigned pairs[2] = {step.x[at * 4 + half], step.x[at * 4 + half + 2]};
    unsigned largest = 0;
    for (unsigned pair : pairs)
        largest = max(largest, max(pair & 0x7fff, pair >> 16 & 0x7fff));
    largest = __reduce_max_sync(~0u, largest);
    int exponent = max(largest >> 7, 14u);
    float factor = __uint_as_float((267 - exponent) << 23);  // 2^13 at the largest's exponent
    unsigned whole[4];
    for (int i = 0; i < 2; ++i) {
        whole[i] = __float_as_uint(lower(pairs[i]) * factor + SHIFT);
        whole[2 + i] = __float_as_uint(upper(pairs[i]) * factor + SHIFT);
    }
    int word = at % 4 % 2 * 2 + half;
    uint4(&of_quarter)[2][4] = to.words[at % 4 / 2];
    ((unsigned*)&of_quarter[1][at / 4])[word] = byte_of_each<0>(whole);
    for (int i = 0; i < 4; ++i)
        whole[i] += 128;  // the lower byte has a sign: from 128 on it counts 256 less
    ((unsigned*)&of_quarter[0][at / 4])[word] = byte_of_each<1>(whole);
    __syncwarp();  // all have written
    return __uint_as_float(largest < 0x7f80 ? (exponent - 13) << 23 : 0x7fc00000);
}

// A lane's numbers of x. Of mma's eight columns the even ones are upper bytes, the odd ones lower.
struct Numbers {
    uint4 words[2];
    float unit;

    __device__ Numbers(WholeNumbers& shared, const Step& step)
        : unit(to_whole_numbers(shared, step)) {
        int lane = threadIdx.x % 32;
        for (int i = 0; i < 2; ++i)
            words[i] = shared.words[i][lane / 4 % 2][lane % 4];
    }
};

// ---- from codes to sums

// Four codes, in the upper halves of a word's bytes, as 16 times the numbers that they stand for: a
// code is its number plus 8, so two's complement has its highest bit the other way round.
__device__ unsigned sixteenfold(unsigned codes) {
    unsigned bytes;
    asm("lop3.b32 %0, %1, 0xf0f0f0f0, 0x80808080, 0x6a;"  // (a & b) ^ c
        : "=r"(bytes)
        : "r"(codes));
    return bytes;
}

// d (16 x 8) += a (16 x 32) b (32 x 8), exactly: whole numbers of a byte, sums of 32 bits. As mma
// of bfloat16 (mma.cuh), but with four neighbours in a register. Source: PTX ISA, "mma", m16n8k32.
__device__ void mma_of_bytes(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// sums (of two rows) += scales * (tile times a group of x).
__device__ void multiply(float (&sums)[2], const Step& step, int t, const Numbers& x) {
    int lane = threadIdx.x % 32;
    uint4 upper_row = step.codes[t][lane];
    uint4 lower_row = step.codes[t][lane + 32];
    unsigned scales = ((const unsigned*)step.scales[t])[lane / 4];
    int products[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // eight of a lane's codes of each row to a product
        unsigned upper_codes = word(upper_row, i);
        unsigned lower_codes = word(lower_row, i);
        unsigned a[4] = {sixteenfold(upper_codes << 4), sixteenfold(lower_codes << 4),
                         sixteenfold(upper_codes), sixteenfold(lower_codes)};
        unsigned b[2] = {word(x.words[i / 2], i % 2 * 2), word(x.words[i / 2], i % 2 * 2 + 1)};
        mma_of_bytes(products, a, b);
    }
    float unit = x.unit / 16;
    sums[0] += lower(scales) * (unit * (256 * products[0] + products[1]));
    sums[1] += upper(scales) * (unit * (256 * products[2] + products[3]));
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

// rows: a multiple of 16 * TILES. k: columns, a multiple of 128.
__global__ void SHAPED gemv_int4(bf16* y, const uint4* codes, const uint4* scales, const bf16* x,
                                 int rows, int k) {
    extern __shared__ __align__(128) unsigned char raw[];
    __shared__ WholeNumbers whole_numbers[WARPS];
    int warp = threadIdx.x / 32;
    Step* ring = (Step*)raw + warp * DEPTH;
    const uint4* words_of_x = (const uint4*)x;
    int groups = k / GROUP;
    int stripes = rows / ROWS;
    Matrix matrix = {codes, scales, groups};
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
    int slot = 0;
    for (int stripe = blockIdx.x; stripe < stripes; stripe += gridDim.x) {
        float sums[TILES][2] = {};
#pragma unroll 2
        for (int group = warp; group < groups; group += WARPS) {
            wait_for_groups<DEPTH - 1>();
            __syncwarp();  // what other lanes have copied is there
            Numbers numbers(whole_numbers[warp], ring[slot]);
#pragma unroll
            for (int t = 0; t < TILES; ++t)
                multiply(sums[t], ring[slot], t, numbers);
            __syncwarp();  // all have read the step that is overwritten
            if (ahead.any(stripes, groups)) {
                ask_for_weights(ring[slot], matrix, ahead);
                ask_for_x(ring[slot], words_of_x, ahead.group);
            }
            close_group();
            ahead.next(groups);
            slot = slot + 1 == DEPTH ? 0 : slot + 1;
        }
        add_warps(y, sums, stripe);
    }
}
