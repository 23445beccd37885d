// Rows that are read once: a row's values stay in the registers of its threads.
//
// A tile is one or more whole rows, or the part of one row that a block of a cluster has. A row
// belongs to a group of threads, which agree on sums and maxima. Tiles come
//   straight from global memory (STAGES = 0), where blocks are small and an SM has many of them, or
//   through a ring of stages in shared memory: while the block works on one tile, bulk copies bring
//   the next ones.
//
// The launcher compiles a file for one shape, so that loops unroll and arrays become registers:
//   ELEMENT  float, __nv_bfloat16 or __half   COLUMNS  of a row
//   CLUSTER  blocks that share a row          THREADS  of a block
//   GROUP    threads that share a row, or their block's part of it: whole warps, or a part of one
//   STAGES   tiles in the ring, or 0          BLOCKS   of an SM at a time
//   STRIDE   from one row of an input to the next, in elements: COLUMNS unless given
//   ACCESS   bytes that a thread reads or writes at once: 16 unless rows begin elsewhere
//   EARLY    1: norms read their parameters before the row, not while the row waits: for few rows
// INPUTS, arrays that are read together, is the file's own.
#pragma once
#include "agree.cuh"
#include "elements.cuh"

#ifndef STRIDE
#define STRIDE COLUMNS
#endif
#ifndef ACCESS
#define ACCESS 16
#endif
#ifndef EARLY
#define EARLY 0
#endif

constexpr int columns = COLUMNS;
constexpr long long stride = STRIDE;
constexpr int cluster = CLUSTER;
constexpr int threads = THREADS;
constexpr int group = GROUP;
constexpr int stages = STAGES;
constexpr int inputs = INPUTS;
constexpr bool ring = stages > 0;
constexpr bool early = EARLY;
constexpr int ring_stages = ring ? stages : 1;  // what may be divided by, and be a length

constexpr int pack = ACCESS / sizeof(Element);  // elements of one access
// Rows of a ragged length begin anywhere in an access. They are read from the access on that holds
// their first value: `lead` values of it belong to the row before.
constexpr bool ragged = columns % (cluster * pack) != 0;
constexpr int equal_part = (columns + cluster - 1) / cluster;
// Columns of a row that one block has; a ragged row's last block has fewer.
constexpr int part = ragged ? (equal_part + pack - 1) / pack * pack : equal_part;
constexpr int tile_rows = threads / group;  // rows of a tile
constexpr int tile_elements = tile_rows * part;
constexpr int warps = threads / 32;
constexpr int group_warps = group / 32;

constexpr int packs = (part / pack + ragged + group - 1) / group;
constexpr int values = packs * pack;  // of a row that one thread keeps
constexpr bool even = !ragged && packs * group * pack == part;

static_assert(!ragged || !ring, "bulk copies take whole accesses only");
static_assert(cluster == 1 || tile_rows == 1, "a cluster shares one row at a time");
static_assert(!ring || stride == columns || tile_rows == 1, "a bulk copy takes neighbours only");
static_assert(group % 32 == 0 || (group < 32 && (group & (group - 1)) == 0), "halves of lanes");

// What a kernel says of its shape. A cluster of one block is not asked for: it would start later.
#if CLUSTER > 1
#define SHAPED __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, BLOCKS)
#else
#define SHAPED __launch_bounds__(THREADS, BLOCKS)
#endif

// ---- which values are mine

__device__ inline int member() {
    return threadIdx.x % group;
}

__device__ inline int row_in_tile() {
    return threadIdx.x / group;
}

__device__ inline int rank() {
    return blockIdx.x % cluster;
}

// How many values of an access lie before (the block's part of) a row that begins in it.
__device__ inline int lead_of(const Element* row) {
    return ragged ? reinterpret_cast<size_t>(row) / sizeof(Element) % pack : 0;
}

// Where, in the block's part of a row, this thread's k-th access is.
__device__ inline int column_of(int k, int lead = 0) {
    return (k * group + member()) * pack - lead;
}

// How many columns of a row this block has.
__device__ inline int own_columns() {
    return ragged ? min(part, columns - rank() * part) : part;
}

// Whether all of an access is in the block's part of a row.
__device__ inline bool inside(int k, int lead = 0) {
    if (!ragged)
        return even || column_of(k) < part;
    return column_of(k, lead) >= 0 && column_of(k, lead) + pack <= own_columns();
}

// Whether this thread's j-th value is one of the row's.
__device__ inline bool has_value(int j, int lead) {
    if (!ragged)
        return inside(j / pack);
    int column = column_of(j / pack, lead) + j % pack;
    return column >= 0 && column < own_columns();
}

using Pack = Access<Element, ACCESS>::type;

// Read this thread's values of (its block's part of) a row; what lies outside becomes `outside`.
template <bool once = false>
__device__ inline void read_row(float (&v)[values], const Element* row, float outside) {
    int lead = lead_of(row);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
        if (inside(k, lead)) {
            const Pack* from = reinterpret_cast<const Pack*>(row + column_of(k, lead));
            unpack(&v[k * pack], once ? load_once(from) : *from);
        } else {
#pragma unroll
            for (int i = 0; i < pack; ++i) {
                v[k * pack + i] = outside;
                if (ragged && has_value(k * pack + i, lead))
                    v[k * pack + i] = float(row[column_of(k, lead) + i]);
            }
        }
    }
}

// Read the parameters that belong to this thread's values of a row that begins with `lead`.
__device__ inline void read_parameters(float (&v)[values], const Element* parameters, int lead) {
    if constexpr (!ragged) {
        read_row(v, parameters, 0);
    } else {
#pragma unroll
        for (int j = 0; j < values; ++j)  // where these begin is not where the row does
            v[j] = has_value(j, lead) ? float(parameters[column_of(j / pack, lead) + j % pack]) : 0;
    }
}

__device__ inline void store_pack(Element* to, const float* from) {
    Pack bits;
    pack_up(bits, from);
    __stcg(reinterpret_cast<Pack*>(to), bits);
}

// Write this thread's values of a row.
__device__ inline void write_row(Element* row, const float (&v)[values]) {
    int lead = lead_of(row);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
        if (inside(k, lead)) {
            store_pack(row + column_of(k, lead), &v[k * pack]);
        } else if (ragged) {
#pragma unroll
            for (int i = 0; i < pack; ++i)
                if (has_value(k * pack + i, lead))
                    row[column_of(k, lead) + i] = Element(v[k * pack + i]);
        }
    }
}

// ---- tiles

// The tiles of one or two matrices, dealt to clusters in turn: number `first`, `first + step`, ...
struct Tiles {
    const Element* from[inputs];
    long long rows;

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

extern __shared__ __align__(128) unsigned char shared_bytes[];
__shared__ Barrier full[ring_stages];  // the tile has come
__shared__ Barrier heard[2];  // all blocks of the cluster have sent their value

// One thread starts the copies of a tile into a stage of the ring.
__device__ inline void start_copy(const Tiles& tiles, int stage, long long tile) {
    long long row = tile * tile_rows;
    long long rows_left = tiles.rows - row;
    unsigned rows = rows_left < tile_rows ? unsigned(rows_left) : tile_rows;
    unsigned bytes = rows * part * sizeof(Element);
    barrier_expect(&full[stage], inputs * bytes);
    Element* to = reinterpret_cast<Element*>(shared_bytes) + stage * inputs * tile_elements;
#pragma unroll
    for (int input = 0; input < inputs; ++input) {
        const Element* from = tiles.from[input] + row * stride + rank() * part;
        bulk_copy(to + input * tile_elements, from, bytes, &full[stage]);
    }
}

// Prepare the barriers and fill the ring. All threads of the cluster call it.
template <bool agree = true>
__device__ inline void start(const Tiles& tiles) {
    if (threadIdx.x == 0 && (ring || cluster > 1)) {
        for (int turn = 0; cluster > 1 && turn < 2; ++turn)
            barrier_init(&heard[turn]);
        for (int stage = 0; stage < stages; ++stage)
            barrier_init(&full[stage]);
        fence_barrier_init();
        long long tile = tiles.first();
        for (int stage = 0; stage < stages && tile < tiles.count(); ++stage, tile += tiles.step())
            start_copy(tiles, stage, tile);
    }
    if (cluster > 1 && agree)
        cluster_arrive();  // the first agreement waits for the others
    if (ring)
        __syncthreads();
}

// Wait until the tile of turn i is there.
__device__ inline void wait_for_tile(int i) {
    if (ring)
        barrier_wait(&full[i % ring_stages], i / ring_stages & 1);
}

// This thread's row of a tile, in shared memory or, without a ring, in global memory.
__device__ inline const Element* row_of(const Tiles& tiles, int i, long long tile, int input = 0) {
    if (ring) {
        const Element* stage = reinterpret_cast<const Element*>(shared_bytes) +
                               (i % ring_stages * inputs + input) * tile_elements;
        return stage + row_in_tile() * part;
    }
    long long row = tile * tile_rows + row_in_tile();
    row = row < tiles.rows ? row : tiles.rows - 1;  // a thread without a row repeats the last one
    return tiles.from[input] + row * stride + rank() * part;
}

// How this thread's row of a tile begins. It is the same for all tiles of a block if their step is
// a multiple of `pack`.
__device__ inline int lead_in(const Tiles& tiles, int i, long long tile) {
    return ragged ? lead_of(row_of(tiles, i, tile)) : 0;
}

// Read this thread's values of a tile.
__device__ inline void read_tile(float (&v)[values], const Tiles& tiles, int i, long long tile,
                                 float outside, int input = 0) {
    read_row<!ring>(v, row_of(tiles, i, tile, input), outside);
}

// Let the next copy have the stage of turn i. A barrier must stand between the last read of the
// tile and this call; an agreement has one unless a row is one warp's.
__device__ inline void refill(const Tiles& tiles, int i, long long tile) {
    if (!ring)
        return;
    if (group <= 32 && cluster == 1)
        __syncthreads();
    long long next = tile + stages * tiles.step();
    if (threadIdx.x == 0 && next < tiles.count())
        start_copy(tiles, i % ring_stages, next);
}

// ---- agreement among the threads of a row

// Combine `count` values in shared memory, 32 at most; every lane gets the result.
template <typename Op, typename Value>
__device__ inline Value reduce_array(const Value* array, int count) {
    int lane = threadIdx.x % 32;
    Value v;
    set(v, Op::neutral());
    if (lane < count)
        v = array[lane];
    return warp_reduce<Op>(v);
}

__shared__ float2 of_warps[2][warps];
__shared__ float2 of_blocks[2][cluster];

// Combine one value (or pair) of each thread of a row; each of them gets the result.
// `round` counts the agreements. Odd and even ones have places of their own: a fast warp may
// already write the next results while a slow one still reads these.
template <typename Op, typename Value>
__device__ inline Value all_reduce(Value v, int& round) {
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int turn = round % 2;
    v = warp_reduce<Op>(v);
    if (group_warps > 1 || cluster > 1) {
        Value* results = reinterpret_cast<Value*>(of_warps[turn]);
        if (lane == 0)
            results[warp] = v;
        __syncthreads();
        v = reduce_array<Op>(results + row_in_tile() * group_warps, group_warps);
    }
    if (cluster > 1) {
        Value* results = reinterpret_cast<Value*>(of_blocks[turn]);
        if (round == 0)
            cluster_wait();  // nobody sends to a block that has not begun
        if (threadIdx.x == 0)
            barrier_expect(&heard[turn], cluster * sizeof(Value));
        if (threadIdx.x < cluster)
            send(&results[rank()], threadIdx.x, v, &heard[turn]);
        barrier_wait(&heard[turn], round / 2 & 1);
        v = reduce_array<Op>(results, cluster);
    }
    ++round;
    return v;
}
