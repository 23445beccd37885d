// The weights' way into a block of the megakernel: a ring of stages in shared memory, which one thread
// keeps full without ever waiting for activations, and what the other warps make of a stage.
// Names are those of the PTX instructions (PTX ISA, "mbarrier", "cp.async.bulk", "mma").
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include "../../row_kernels/kernels/bulk_copy.cuh"

#ifndef BITS
#define BITS 16  // of a weight: 16 (bfloat16), 8 (e4m3) or 4
#endif
#ifndef BATCH
#define BATCH 1  // sequences, at most 8: the columns of an mma
#endif
#ifndef WARPS
#define WARPS 8  // that multiply
#endif
#ifndef SLICE
#define SLICE 256  // columns of activations that each of them holds, at most 256
#endif
#ifndef PIECES
#define PIECES 1  // stages of so many columns of a tile
#endif
#ifndef TOGETHER
#define TOGETHER 2  // tiles that a warp multiplies together: 2 or 4
#endif
#ifndef STAGES
#define STAGES 6
#endif
#ifndef FLIGHT
#define FLIGHT STAGES  // stages that are on their way at once: fewer leave room for other loads
#endif
#ifndef AHEAD
#define AHEAD 0  // KB of weights that a block asks into L2 ahead of their copies
#endif
#ifndef RATE
#define RATE 16  // bytes per cycle that it asks ahead, at most: an H200's memory has 16 for each SM
#endif
#ifndef TILES
#define TILES 8  // whose sums a block adds up at once
#endif

constexpr int ROWS = 8;  // of a tile: half of an mma's
static_assert(TOGETHER % 2 == 0 && TILES % TOGETHER == 0 && STAGES >= TOGETHER,
              "a product has two");
constexpr int CHUNK = WARPS * SLICE;  // columns of a block
constexpr int STEPS = SLICE / 32;  // pairs of mma of a warp for each tile, ...
constexpr int PIECE_STEPS = STEPS / PIECES;  // ... and for each stage
constexpr int GROUP_COLUMNS = 128;  // that share a scale, where weights have fewer than 16 bits
constexpr int CODES_BYTES = ROWS * CHUNK * BITS / 8 / PIECES;
constexpr int SCALES = BITS == 16 ? 0 : ROWS * CHUNK / GROUP_COLUMNS / PIECES;
constexpr int STAGE_BYTES = CODES_BYTES + SCALES * 2;

// A matrix in the order in which it is read: tiles of 8 rows, each in chunks of CHUNK columns, and
// each of those in PIECES stages, as megakernel.packed lays it out.
struct Matrix {
    const unsigned char* stages;
    int tiles, chunks;

    __device__ const unsigned char* stage(int tile, int chunk, int piece) const {
        return stages + (((size_t)tile * chunks + chunk) * PIECES + piece) * STAGE_BYTES;
    }
    // The same matrix of a later layer.
    __device__ Matrix of_layer(int layer) const {
        return {stage(layer * tiles, 0, 0), tiles, chunks};
    }
};

__device__ inline void barrier_init(Barrier* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals));
}

__device__ inline void barrier_arrive(Barrier* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

// As in bulk_copy.cuh. Weights are read once in a token: they leave L2 before the activations do.
__device__ inline void bulk_copy(void* to, const void* from, unsigned bytes, Barrier* barrier,
                                 Policy policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
        : "memory");
}

// Bytes begin their way into L2; the address and the size are multiples of 16.
__device__ inline void bulk_prefetch(const void* from, unsigned bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

// Whether the phase with this parity has ended.
__device__ inline bool barrier_test(Barrier* barrier, unsigned parity) {
    unsigned done;
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return done;
}

struct Ring {
    alignas(128) unsigned char stages[STAGES][STAGE_BYTES];
    Barrier full[STAGES];  // a stage's bytes are there
    Barrier empty[STAGES];  // all warps have read it

    __device__ void init() {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], WARPS);
        }
        fence_barrier_init();
    }
};

// Where one side of the ring stands.
struct Place {
    int stage = 0;
    unsigned parity = 0;

    __device__ void next() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// Which tiles of the matrices are this block's: every gridDim.x-th, and of the next matrix it goes on
// where the last one ended, so that all blocks have about as many.
struct Share {
    int first;

    __device__ Share() : first(blockIdx.x) {}
    __device__ void pass(int tiles) {
        int blocks = gridDim.x;
        first = (first - tiles % blocks + blocks) % blocks;
    }
};

// The products of a layer, and the last one.
enum Kind { PROJECT, ADD_ATTENDED, SWIGLU, ADD_DOWN, PREDICT };

// Of all layers, each matrix behind that of the layer before; and the last one.
struct Matrices {
    Matrix qkv, out, gate_up, down, head;
    int layers;

    // Which product is a token's n-th; PREDICT is the last one.
    __device__ Kind kind_at(int n) const {
        return n >= PREDICT * layers ? PREDICT : (Kind)(n % PREDICT);
    }
    __device__ Matrix of(Kind kind, int layer) const {
        switch (kind) {
            case PROJECT:
                return qkv.of_layer(layer);
            case ADD_ATTENDED:
                return out.of_layer(layer);
            case SWIGLU:
                return gate_up.of_layer(layer);
            case ADD_DOWN:
                return down.of_layer(layer);
            default:
                return head;
        }
    }
};

// This block's way through a token's stages: matrix by matrix, TOGETHER tiles at once, in the order
// in which the warps take them.
struct Way {
    const Matrices& matrices;
    int n = 0;  // which product's matrix
    Matrix matrix;
    Share share = {};
    int first = 0, tile = 0, chunk = 0, piece = 0;

    __device__ explicit Way(const Matrices& matrices) : matrices(matrices), matrix(matrices.qkv) {
        first = tile = share.first;
        skip();
    }
    __device__ bool has_stage() const {
        return n <= PREDICT * matrices.layers;
    }
    __device__ const unsigned char* stage() const {
        return matrix.stage(tile, chunk, piece);
    }
    __device__ void next() {
        int stride = gridDim.x;
        tile += stride;
        if (tile < min(first + TOGETHER * stride, matrix.tiles))
            return;
        tile = first;
        if (++piece < PIECES)
            return;
        piece = 0;
        if (++chunk < matrix.chunks)
            return;
        chunk = 0;
        tile = first += TOGETHER * stride;
        skip();
    }
    // To the next matrix of which this block has a tile, if the current one has no more.
    __device__ void skip() {
        while (first >= matrix.tiles && has_stage()) {
            share.pass(matrix.tiles);
            ++n;
            matrix = matrices.of(matrices.kind_at(n), n / PREDICT);
            first = tile = share.first;
        }
    }
};

constexpr int DISTANCE = AHEAD * 1024 / STAGE_BYTES;  // stages that are asked into L2 ahead
constexpr int PACE = RATE > 0 ? STAGE_BYTES / RATE : 0;  // cycles that memory has for one of them

// The copying thread: puts this block's stages into the ring, as room comes. A full ring would let
// memory rest. So meanwhile stages behind it begin their way into L2, from where their copies will
// be quicker: as many as memory can deliver, since a longer queue would delay the activations.
struct Copier {
    Ring& ring;
    Way copied, asked;  // the next stage to be copied, and the next to be asked into L2
    int ahead = 0;  // stages between them
    unsigned due = 0;  // the clock when memory can take the next request
    Policy policy = evict_first();
    Place place = {0, 1};  // of a new barrier the phase before the first counts as ended
    Place arriving = {};  // the first stage that may still be on its way
    int on_their_way = 0;

    __device__ Copier(Ring& ring, const Matrices& matrices)
        : ring(ring), copied(matrices), asked(matrices), due((unsigned)clock64()) {}

    __device__ void copy_all() {
        while (copied.has_stage()) {
            copy(copied.stage());
            copied.next();
            if (DISTANCE > 0)
                count_copy();
        }
    }
    // While copies are on their way nothing is asked: it would only delay them.
    __device__ void ask_while_full() {
        while (ahead < DISTANCE && asked.has_stage() &&
               !barrier_test(&ring.empty[place.stage], place.parity))
            ask();
    }
    // Asks for a stage, if memory has had its time for those before.
    __device__ void ask() {
        if ((int)((unsigned)clock64() - due) < 0)
            return;
        bulk_prefetch(asked.stage(), STAGE_BYTES);
        asked.next();
        ++ahead;
        occupy_memory();
    }
    // A stage that was not asked ahead has been asked by its copy.
    __device__ void count_copy() {
        if (ahead > 0) {
            --ahead;
            return;
        }
        asked.next();
        occupy_memory();
    }
    __device__ void occupy_memory() {
        unsigned now = (unsigned)clock64();
        due += PACE;
        if ((int)(now - due) > 0)
            due = now;  // time in which memory rested is lost
    }
    __device__ void copy(const unsigned char* from) {
        if (on_their_way == FLIGHT) {
            barrier_wait(&ring.full[arriving.stage], arriving.parity);
            arriving.next();
            --on_their_way;
        }
        ask_while_full();
        barrier_wait(&ring.empty[place.stage], place.parity);
        barrier_expect(&ring.full[place.stage], STAGE_BYTES);
        bulk_copy(ring.stages[place.stage], from, STAGE_BYTES, &ring.full[place.stage], policy);
        place.next();
        ++on_their_way;
    }
};

// ---- a warp's share of a stage

union Words {
    uint4 all;
    unsigned word[4];
};

// A warp's columns of up to 8 sequences: a lane has those of sequence lane / 4.
using Activations = Words[STEPS];

// sums (rows of two tiles x sequences) += a b: words 0 and 2 of a are the first tile's.
__device__ inline void mma(float (&sums)[4], unsigned a_0, unsigned a_1, unsigned a_2, unsigned a_3,
                           unsigned b_0, unsigned b_1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a_0), "r"(a_1), "r"(a_2), "r"(a_3), "r"(b_0), "r"(b_1));
}

__device__ inline unsigned bits_of(__nv_bfloat162 both) {
    return *(unsigned*)&both;
}

// (x & MASK) | y in one instruction.
template <unsigned MASK>
__device__ inline unsigned masked_or(unsigned x, unsigned y) {
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(x), "n"(MASK), "r"(y));
    return result;
}

// 8 codes of 4 bits to 8 numbers: 0x4300 with a code below is 128 + code.
__device__ inline void decode(unsigned (&numbers)[4], unsigned codes) {
    const __nv_bfloat162 OFFSET = __floats2bfloat162_rn(136, 136);
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        unsigned both = masked_or<0x000F000F>(codes >> 4 * p, 0x43004300);
        numbers[p] = bits_of(__hsub2(*(__nv_bfloat162*)&both, OFFSET));
    }
}

// 4 codes e4m3 to 4 numbers: exponent and mantissa where bfloat16 has them, then times 2^120, which
// is by how much the exponents' zeros differ.
__device__ inline void decode(unsigned& first, unsigned& second, unsigned codes) {
    const unsigned SCALE = 0x7B807B80;
    unsigned even = (codes & 0x00800080) << 8 | (codes & 0x007F007F) << 4;
    unsigned odd = codes & 0x80008000 | (codes & 0x7F007F00) >> 4;
    first = bits_of(__hmul2(*(__nv_bfloat162*)&even, *(__nv_bfloat162*)&SCALE));
    second = bits_of(__hmul2(*(__nv_bfloat162*)&odd, *(__nv_bfloat162*)&SCALE));
}

// The numbers of step `step` from this lane's 16 bytes: 1, 2 or 4 steps.
__device__ inline void numbers_of(unsigned (&b)[4], const Words& codes, int step) {
#if BITS == 16
    for (int i = 0; i < 4; ++i)
        b[i] = codes.word[i];
#elif BITS == 8
    decode(b[0], b[1], codes.word[step % 2 * 2]);
    decode(b[2], b[3], codes.word[step % 2 * 2 + 1]);
#else
    decode(b, codes.word[step % 4]);
#endif
}

// The scale of a group of columns of this lane's row.
__device__ inline float scale_of(const unsigned char* stage, int group) {
#if BITS == 16
    return 1;
#else
    return (
        float)((const __nv_bfloat16*)(stage + CODES_BYTES))[group * ROWS + threadIdx.x % 32 / 4];
#endif
}

// The numbers of 32 columns of two tiles times those of the sequences: a lane has 8 neighbouring
// columns, 32 step + 8 (lane % 4) and on, of either tile's row lane / 4. In which order a product takes
// columns is free, as long as both factors have the same. Two sums, so that neither product waits.
__device__ inline void multiply_step(float (&sums)[2][4], const unsigned (&first)[4],
                                     const unsigned (&second)[4], const Words& x) {
    mma(sums[0], first[0], second[0], first[1], second[1], x.word[0], x.word[1]);
    mma(sums[1], first[2], second[2], first[3], second[3], x.word[2], x.word[3]);
}

// sums += this warp's columns of two stages, of two tiles, times those of x from `from` on. Of the
// sums a lane has row lane / 4 of the first tile and sequences 2 (lane % 4) and the next, then the
// same of the second tile.
__device__ inline void multiply_stages(float (&sums)[4], const Activations& x, int from,
                                       const unsigned char* first, const unsigned char* second) {
    constexpr int STEPS_OF_16_BYTES = 16 / BITS;
    constexpr int STEPS_OF_SUM = BITS == 16 ? (PIECE_STEPS + 1) / 2 : GROUP_COLUMNS / 32;
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    int own = warp * (PIECE_STEPS / STEPS_OF_16_BYTES) * 32 + lane;
    Words codes[2];
#pragma unroll
    for (int begin = 0; begin < PIECE_STEPS; begin += STEPS_OF_SUM) {
        float part[2][4] = {};
#pragma unroll
        for (int step = begin; step < min(begin + STEPS_OF_SUM, PIECE_STEPS); ++step) {
            if (step % STEPS_OF_16_BYTES == 0) {
                codes[0].all = ((const uint4*)first)[own + step / STEPS_OF_16_BYTES * 32];
                codes[1].all = ((const uint4*)second)[own + step / STEPS_OF_16_BYTES * 32];
            }
            unsigned a[2][4];
            numbers_of(a[0], codes[0], step);
            numbers_of(a[1], codes[1], step);
            multiply_step(part, a[0], a[1], x[from + step]);
        }
        int group = warp * (SLICE / PIECES / GROUP_COLUMNS) + begin / STEPS_OF_SUM;
        float scale[2] = {scale_of(first, group), scale_of(second, group)};
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sums[i] += scale[i / 2] * (part[0][i] + part[1][i]);
    }
}
