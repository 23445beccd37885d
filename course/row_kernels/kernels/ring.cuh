// Rows stream through a ring of tiles in shared memory, each read from global memory once.
//
// A tile is one or more whole rows, or the part of one row that a block of a cluster has. While the
// block works on one tile, bulk copies bring the next ones. A row belongs to a group of threads: each
// keeps its values of the row in registers, and the group agrees on sums and maxima.
//
// The launcher compiles a file for one shape, so that loops unroll and arrays become registers:
//   ELEMENT  float or __nv_bfloat16      COLUMNS  of a row
//   CLUSTER  blocks that share a row     THREADS  of a block
//   GROUP    threads that share a row, or their block's part of it (32 or more, a power of two)
//   STAGES   tiles in the ring           BLOCKS   of an SM at a time
// INPUTS, arrays that are read together, is the file's own.
#pragma once
#include <cuda_bf16.h>

#include "bulk_copy.cuh"

using Element = ELEMENT;
using Policy = unsigned long long;

constexpr int columns = COLUMNS;
constexpr int cluster = CLUSTER;
constexpr int threads = THREADS;
constexpr int group = GROUP;
constexpr int stages = STAGES;
constexpr int inputs = INPUTS;

constexpr int part = columns / cluster;  // columns of a row that one block has
constexpr int tile_rows = threads / group;  // rows of a tile
constexpr int tile_elements = tile_rows * part;
constexpr int warps = threads / 32;
constexpr int group_warps = group / 32;

constexpr int pack = 16 / sizeof(Element);  // elements of one access, 16 bytes
constexpr int packs = (part / pack + group - 1) / group;
constexpr int values = packs * pack;  // of a row that one thread keeps
constexpr bool even = packs * group * pack == part;

static_assert(columns % (cluster * pack) == 0, "parts of a row are whole accesses");
static_assert(cluster == 1 || tile_rows == 1, "a cluster shares one row at a time");

extern __shared__ __align__(128) unsigned char shared_bytes[];
__shared__ Barrier full[stages];
__shared__ float2 partials[2][cluster * warps];

// ---- which values are mine --------------------------------------------------------------------------

__device__ inline int member() {
    return threadIdx.x % group;
}
__device__ inline int row_in_tile() {
    return threadIdx.x / group;
}
__device__ inline int rank() {
    return cluster > 1 ? cluster_rank() : 0;
}

// Where, in the block's part of a row, this thread's k-th access is.
__device__ inline int column_of(int k) {
    return (k * group + member()) * pack;
}
__device__ inline bool inside(int k) {
    return even || column_of(k) < part;
}

__device__ inline void unpack(float* to, const float* from) {
    float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

__device__ inline void unpack(float* to, const __nv_bfloat16* from) {
    uint4 bits = *reinterpret_cast<const uint4*>(from);
    const unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // a bfloat16 is the upper half of a float
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

// Stores bypass what the caches would keep: nobody reads the output soon.
__device__ inline void store_pack(float* to, const float* from) {
    __stcs(reinterpret_cast<float4*>(to), make_float4(from[0], from[1], from[2], from[3]));
}

__device__ inline void store_pack(__nv_bfloat16* to, const float* from) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        __nv_bfloat162 two = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
        words[i] = *reinterpret_cast<unsigned*>(&two);
    }
    __stcs(reinterpret_cast<uint4*>(to), make_uint4(words[0], words[1], words[2], words[3]));
}

// Read this thread's values of (its block's part of) a row; what lies outside becomes `outside`.
template <typename T>
__device__ inline void read_row(float (&v)[values], const T* row, float outside) {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
        if (inside(k)) {
#pragma unroll
            for (int p = 0; p < pack * sizeof(T) / 16; ++p)
                unpack(&v[k * pack + p * 16 / sizeof(T)], row + column_of(k) + p * 16 / sizeof(T));
        } else {
#pragma unroll
            for (int i = 0; i < pack; ++i)
                v[k * pack + i] = outside;
        }
    }
}

// Write this thread's values of a row.
__device__ inline void write_row(Element* row, const float (&v)[values]) {
#pragma unroll
    for (int k = 0; k < packs; ++k)
        if (inside(k))
            store_pack(row + column_of(k), &v[k * pack]);
}

// ---- the ring ---------------------------------------------------------------------------------------

// The tiles of a matrix, dealt to clusters in turn: tile number `first`, `first + step`, ...
struct Tiles {
    const Element* from[inputs];
    long long rows;
    Policy policy;

    __device__ long long count() const {
        return (rows + tile_rows - 1) / tile_rows;
    }
    __device__ long long first() const {
        return blockIdx.x / cluster;
    }
    __device__ long long step() const {
        return gridDim.x / cluster;
    }
};

// This thread's row of a tile in shared memory.
__device__ inline const Element* tile_row(int stage, int input = 0) {
    const Element* tiles = reinterpret_cast<const Element*>(shared_bytes);
    return tiles + (stage * inputs + input) * tile_elements + row_in_tile() * part;
}

// One thread starts the copies of a tile into a stage of the ring.
__device__ inline void start_copy(const Tiles& tiles, int stage, long long tile) {
    long long row = tile * tile_rows;
    long long rows_left = tiles.rows - row;
    unsigned rows = rows_left < tile_rows ? unsigned(rows_left) : tile_rows;
    unsigned bytes = rows * part * sizeof(Element);
    barrier_expect(&full[stage], inputs * bytes);
#pragma unroll
    for (int input = 0; input < inputs; ++input) {
        Element* to =
            reinterpret_cast<Element*>(shared_bytes) + (stage * inputs + input) * tile_elements;
        bulk_copy(to, tiles.from[input] + row * columns + rank() * part, bytes, &full[stage],
                  tiles.policy);
    }
}

// Prepare the barriers and fill the ring. All threads of the cluster call it.
__device__ inline void start_ring(const Tiles& tiles) {
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < stages; ++stage)
            barrier_init(&full[stage]);
        fence_barrier_init();
        long long tile = tiles.first();
        for (int stage = 0; stage < stages && tile < tiles.count(); ++stage, tile += tiles.step())
            start_copy(tiles, stage, tile);
    }
    if (cluster > 1)
        cluster_barrier();  // nobody writes to a block that has not begun
    else
        __syncthreads();
}

// Wait until the tile of turn i is in its stage.
__device__ inline void wait_for_tile(int i) {
    barrier_wait(&full[i % stages], i / stages & 1);
}

// Let the next copy have the stage of turn i. A barrier must stand between the last read of the tile
// and this call; a reduction has one unless a row is one warp's.
__device__ inline void refill(const Tiles& tiles, int i, long long tile) {
    if (group == 32 && cluster == 1)
        __syncthreads();
    long long next = tile + stages * tiles.step();
    if (threadIdx.x == 0 && next < tiles.count())
        start_copy(tiles, i % stages, next);
}

// ---- agreement among the threads of a row ------------------------------------------------------------

__device__ inline float infinity() {
    return __uint_as_float(0x7f800000);
}

struct Add {
    __device__ static float neutral() {
        return 0;
    }
    __device__ static float combine(float a, float b) {
        return a + b;
    }
};

struct Max {
    __device__ static float neutral() {
        return -infinity();
    }
    __device__ static float combine(float a, float b) {
        return fmaxf(a, b);
    }
};

template <typename Op>
__device__ inline float combine(float a, float b) {
    return Op::combine(a, b);
}

template <typename Op>
__device__ inline float2 combine(float2 a, float2 b) {
    return make_float2(Op::combine(a.x, b.x), Op::combine(a.y, b.y));
}

__device__ inline float shuffle(float v, int lanes) {
    return __shfl_xor_sync(~0u, v, lanes);
}
__device__ inline float2 shuffle(float2 v, int lanes) {
    return make_float2(shuffle(v.x, lanes), shuffle(v.y, lanes));
}

__device__ inline void set(float& v, float to) {
    v = to;
}
__device__ inline void set(float2& v, float to) {
    v = make_float2(to, to);
}

template <typename Op, typename Value>
__device__ inline Value warp_reduce(Value v) {
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        v = combine<Op>(v, shuffle(v, lanes));
    return v;
}

// Combine one value (or pair) of each thread of a row; each of them gets the result.
// `turn` alternates between two places for the warps' results: a fast warp may already write the next
// ones while a slow warp still reads these.
template <typename Op, typename Value>
__device__ inline Value all_reduce(Value v, int& turn) {
    v = warp_reduce<Op>(v);
    if (group_warps == 1 && cluster == 1)
        return v;

    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    Value* results = reinterpret_cast<Value*>(partials[turn]);
    turn ^= 1;
    if (cluster > 1) {
        if (lane < cluster)
            store_remote(&results[rank() * warps + warp], lane, v);
        cluster_barrier();
    } else {
        if (lane == 0)
            results[warp] = v;
        __syncthreads();
    }

    constexpr int count = cluster * group_warps;
    const Value* mine = results + row_in_tile() * group_warps;
    set(v, Op::neutral());
#pragma unroll
    for (int i = 0; i < count; i += 32)
        if (i + lane < count)
            v = combine<Op>(v, mine[i + lane]);
    return warp_reduce<Op>(v);
}
