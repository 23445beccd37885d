// Rows that pass through shared memory: a tile of whole rows, which begin anywhere.
//
// A row of a few elements is no work for a warp, and where it is no whole number of accesses its
// threads would read piecemeal. The rows of a tile lie one behind the other, though, and together
// they are one long piece, whoever's row a byte of it is. Then a row's own threads take it from
// shared memory, element by element if need be, and put the result in its place, which goes to
// global memory as it came.
//   STAGES = 0  the block's threads bring a tile and take it away, in accesses of ACCESS bytes;
//   STAGES > 0  bulk copies do, through a ring of stages, while the block works on other tiles.
//               They move whole accesses of 16 bytes: a piece begins in shared memory where it
//               begins within an access in global memory (its `lead`). Rows with gaps between them
//               are pieces of their own.
//
// The launcher compiles a file for one shape, as with fast.cuh:
//   ELEMENT  float, __nv_bfloat16 or __half   COLUMNS  of a row
//   THREADS  of a block                       GROUP    threads that share a row: 1, 2, 4 ... 32, or
//                                                      whole warps
//   PASSES   rows of a tile that a group takes, one after the other
//   STRIDE   from one row to the next, in elements
//   ACCESS   bytes that a thread reads at once (STAGES = 0), or at which all rows begin
//   BLOCKS   of an SM at a time
//   EARLY    1: parameters stay in registers, from before the first row on
//   APART    1: results have room of their own, where rows are read from and written to places that
//            lie differently within an access
//   GATHER   1, or how many blocks there are in all, a cluster, which add up columns themselves
// INPUTS, arrays that are read together, is the file's own.
#pragma once
#include "agree.cuh"
#include "elements.cuh"

#ifndef GATHER
#define GATHER 1
#endif

constexpr int columns = COLUMNS;
constexpr long long stride = STRIDE;
constexpr int threads = THREADS;
constexpr int group = GROUP;
constexpr int passes = PASSES;
constexpr int inputs = INPUTS;
constexpr int warps = threads / 32;
constexpr int group_warps = group / 32;
constexpr int groups = threads / group;  // rows that are worked on at once
constexpr int tile_rows = groups * passes;
constexpr bool ring = STAGES > 0;
constexpr int stages = ring ? STAGES : 1;
constexpr bool early = EARLY;
constexpr bool apart = APART;

using In = Access<Element, ACCESS>::type;
using Out = Access<Element, 16>::type;
constexpr int in_pack = sizeof(In) / sizeof(Element);
constexpr int out_pack = sizeof(Out) / sizeof(Element);

// Elements that a thread takes from shared memory at once: they begin where all rows may begin.
__device__ constexpr int divisor(int a, int b) {
    return b == 0 ? a : divisor(b, a % b);
}
constexpr int unit = divisor(divisor(columns, out_pack), ring ? in_pack : 2);
constexpr int units = (columns / unit + group - 1) / group;
constexpr int values = units * unit;  // of a row that one thread keeps

// A tile's pieces in shared memory, each with room for what precedes it within an access.
constexpr bool gaps = stride != columns;
constexpr int pieces = ring && gaps ? tile_rows : 1;
constexpr int piece_rows = tile_rows / pieces;

__device__ constexpr int room_for(int elements) {
    return ((elements + out_pack - 1) / out_pack + ring) * out_pack;
}
constexpr int piece_elements = room_for(piece_rows * columns);
constexpr int tile_elements = pieces * piece_elements;
constexpr int result_elements = room_for(tile_rows * columns);

static_assert(ring || tile_rows * columns % out_pack == 0, "a tile begins where an access does");
static_assert(ring || !gaps || columns % in_pack == 0, "no access spans two rows with a gap");
static_assert(!apart || ring, "threads that bring rows see to it themselves");

#if GATHER > 1
#define SHAPED __cluster_dims__(GATHER) __launch_bounds__(THREADS, BLOCKS)
#else
#define SHAPED __launch_bounds__(THREADS, BLOCKS)
#endif

extern __shared__ __align__(128) unsigned char shared_bytes[];
__shared__ Barrier full[stages];  // the tile has come

// ---- where things lie

// The matrices: what is read, and where the result goes.
struct Matrices {
    const Element* from[inputs];
    Element* to;
    long long rows;

    __device__ long long tiles() const {
        return (rows + tile_rows - 1) / tile_rows;
    }
};

// A tile that has come: its first row, how many it has (the last tile has fewer), and its stage.
struct Tile {
    long long first;
    int rows;
    Element* stage;
};

__device__ inline Tile tile_of(const Matrices& matrices, long long i, long long number) {
    long long first = number * tile_rows;
    long long left = matrices.rows - first;
    Element* shared = reinterpret_cast<Element*>(shared_bytes);
    return {first, left < tile_rows ? int(left) : tile_rows,
            shared + int(i % stages) * inputs * tile_elements};
}

// How many elements precede one in its access.
__device__ inline int lead_of(const Element* element) {
    return ring ? reinterpret_cast<size_t>(element) / sizeof(Element) % out_pack : 0;
}

// Where a row of the tile lies in shared memory.
__device__ inline Element* staged(const Matrices& matrices, const Tile& tile, int row, int input) {
    long long piece = gaps && ring ? row : 0;
    const Element* begin = matrices.from[input] + (tile.first + piece) * stride;
    return tile.stage + input * tile_elements + int(piece) * piece_elements + lead_of(begin) +
           int(row - piece) * columns;
}

// Where a row of the tile's results lies in shared memory.
__device__ inline Element* result(const Matrices& matrices, const Tile& tile, int row) {
    if (!apart)
        return staged(matrices, tile, row, 0);
    Element* shared = reinterpret_cast<Element*>(shared_bytes);
    return shared + stages * inputs * tile_elements + lead_of(matrices.to + tile.first * columns) +
           row * columns;
}

// ---- a tile's way in and out, by bulk copies

// Those whole accesses that hold a piece's elements and lie within the matrix.
struct Accesses {
    const Element* begin;
    const Element* end;
};

__device__ inline Accesses accesses_of(const Matrices& matrices, long long row, int count,
                                       int input) {
    const Element* matrix = matrices.from[input];
    const Element* matrix_end = matrix + (matrices.rows - 1) * stride + columns;
    const Element* begin = matrix + row * stride;
    const Element* end = begin + count;
    begin -= lead_of(begin);
    end += (out_pack - lead_of(end)) % out_pack;
    begin += begin < matrix ? out_pack : 0;
    end -= end > matrix_end ? out_pack : 0;
    return {begin, end < begin ? begin : end};
}

// One thread starts the copies of a tile.
__device__ inline void start_copy(const Matrices& matrices, long long i, long long number) {
    Tile tile = tile_of(matrices, i, number);
    int count = gaps ? columns : tile.rows * columns;
    int used = gaps ? tile.rows : 1;
    unsigned bytes = 0;
    for (int input = 0; input < inputs; ++input)
        for (int piece = 0; piece < used; ++piece) {
            Accesses whole = accesses_of(matrices, tile.first + piece, count, input);
            bytes += unsigned(whole.end - whole.begin) * sizeof(Element);
        }
    Barrier* barrier = &full[i % stages];
    barrier_expect(barrier, bytes);
    for (int input = 0; input < inputs; ++input)
        for (int piece = 0; piece < used; ++piece) {
            const Element* begin = matrices.from[input] + (tile.first + piece) * stride;
            Accesses whole = accesses_of(matrices, tile.first + piece, count, input);
            Element* to = tile.stage + input * tile_elements + piece * piece_elements;
            to += lead_of(begin) + int(whole.begin - begin);
            unsigned size = unsigned(whole.end - whole.begin) * sizeof(Element);
            if (size > 0)
                bulk_copy(to, whole.begin, size, barrier);
        }
}

// What no whole access holds, at the matrix's two ends, comes by threads.
__device__ inline void bring_ends(const Matrices& matrices, const Tile& tile) {
    int count = gaps ? columns : tile.rows * columns;
    int used = gaps ? tile.rows : 1;
#pragma unroll
    for (int input = 0; input < inputs; ++input)
        for (int piece = 0; piece < used; ++piece) {
            const Element* begin = matrices.from[input] + (tile.first + piece) * stride;
            Element* to = tile.stage + input * tile_elements + piece * piece_elements;
            to += lead_of(begin);
            Accesses whole = accesses_of(matrices, tile.first + piece, count, input);
            int before = min(count, max(0, int(whole.begin - begin)));
            int behind = max(before, int(whole.end - begin));
            int n = threadIdx.x;
            if (n < before)
                to[n] = begin[n];
            if (behind + n < count)
                to[behind + n] = begin[behind + n];
        }
}

// Prepare the barriers and fill the ring. All threads of the block call it.
__device__ inline void start(const Matrices& matrices) {
    if (!ring)
        return;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < stages; ++stage)
            barrier_init(&full[stage]);
        fence_barrier_init();
        long long number = blockIdx.x;
        for (int i = 0; i < stages && number < matrices.tiles(); ++i, number += gridDim.x)
            start_copy(matrices, i, number);
    }
    __syncthreads();
}

// Give the stage of turn i to the next tile that it is for.
__device__ inline void refill(const Matrices& matrices, long long i, long long number) {
    long long next = number + static_cast<long long>(stages) * gridDim.x;
    if (threadIdx.x == 0 && next < matrices.tiles())
        start_copy(matrices, i + stages, next);
}

// ---- a tile's way in and out, by threads

// Where the tile's n-th access begins, counted in elements from its first row.
__device__ inline long long place_of(int n) {
    if (!gaps)
        return n * in_pack;
    constexpr int row_packs = columns / in_pack > 0 ? columns / in_pack : 1;
    return n / row_packs * stride + n % row_packs * in_pack;
}

__device__ inline void bring(const Matrices& matrices, const Tile& tile, int input) {
    constexpr int most = (tile_rows * columns / in_pack + threads - 1) / threads;
    const Element* from = matrices.from[input] + tile.first * stride;
    Element* to = tile.stage + input * tile_elements;
    int packs = tile.rows * columns / in_pack;
    In held[most > 0 ? most : 1];  // all on their way before the first is needed
#pragma unroll
    for (int k = 0; k < most; ++k) {
        int n = k * threads + threadIdx.x;
        if (n < packs)
            held[k] = load_once(reinterpret_cast<const In*>(from + place_of(n)));
    }
#pragma unroll
    for (int k = 0; k < most; ++k) {
        int n = k * threads + threadIdx.x;
        if (n < packs)
            reinterpret_cast<In*>(to)[n] = held[k];
    }
    int rest = packs * in_pack + threadIdx.x;  // only the last tile ends within an access
    if (rest < tile.rows * columns)
        to[rest] = from[rest];
}

__device__ inline void take(const Matrices& matrices, const Tile& tile) {
    constexpr int most = (tile_rows * columns / out_pack + threads - 1) / threads;
    Element* to = matrices.to + tile.first * columns;
    const Out* from = reinterpret_cast<const Out*>(tile.stage);
    int packs = tile.rows * columns / out_pack;
#pragma unroll
    for (int k = 0; k < most; ++k) {
        int n = k * threads + threadIdx.x;
        if (n < packs)
            __stcg(reinterpret_cast<Out*>(to) + n, from[n]);
    }
    int rest = packs * out_pack + threadIdx.x;
    if (rest < tile.rows * columns)
        to[rest] = tile.stage[rest];
}

// ---- a turn: a tile comes, is worked on, and goes

// Wait until the tile of turn i is in shared memory.
__device__ inline Tile arrive(const Matrices& matrices, long long i, long long number) {
    Tile tile = tile_of(matrices, i, number);
    if (ring) {
        barrier_wait(&full[i % stages], i / stages & 1);
        if (tile.first == 0 || tile.first + tile.rows == matrices.rows) {
            bring_ends(matrices, tile);
            __syncthreads();
        }
        if (apart) {  // the last results have been read
            if (threadIdx.x == 0)
                bulk_wait_read<0>();
            __syncthreads();
        }
        return tile;
    }
#pragma unroll
    for (int input = 0; input < inputs; ++input)
        bring(matrices, tile, input);
    __syncthreads();
    return tile;
}

// Let the tile of turn i go, and the next one come, when nothing was written.
__device__ inline void leave(const Matrices& matrices, long long i, long long number) {
    __syncthreads();
    if (ring)
        refill(matrices, i, number);
}

// Take the results of turn i to global memory, and let the next tile come.
__device__ inline void leave_with_results(const Matrices& matrices, long long i, long long number,
                                          const Tile& tile) {
    if (!ring) {
        __syncthreads();
        take(matrices, tile);
        if (inputs > 1)  // only then there is another turn
            __syncthreads();
        return;
    }
    fence_async();  // the copy engine must see what threads wrote
    __syncthreads();
    Element* to = matrices.to + tile.first * columns;
    const Element* from = result(matrices, tile, 0);
    int count = tile.rows * columns;
    int head = min(count, (out_pack - lead_of(to)) % out_pack);
    int body = (count - head) / out_pack * out_pack;
    if (threadIdx.x == 0) {
        if (body > 0)
            bulk_store(to + head, from + head, body * sizeof(Element));
        bulk_commit();
        if (!apart)
            bulk_wait_read<(stages > 1)>();  // the store before this one has left its stage
    }
    int n = threadIdx.x;
    if (n < head)
        to[n] = from[n];
    if (head + body + n < count)
        to[head + body + n] = from[head + body + n];
    if (!apart && stages == 1)
        __syncthreads();  // the ends have been read, too
    if (apart || stages == 1)
        refill(matrices, i, number);
    else if (i > 0)
        refill(matrices, i - 1, number - gridDim.x);
}

// Shared memory is needed for something else, or no more.
__device__ inline void finish() {
    if (ring && threadIdx.x == 0)
        bulk_wait_read<0>();
    if (inputs > 1)
        __syncthreads();
}

// ---- a row of the tile, and a thread's part of it

__device__ inline int member() {
    return threadIdx.x % group;
}

__device__ inline int row_of_pass(int pass) {
    return pass * groups + threadIdx.x / group;
}

// The column of this thread's j-th value.
__device__ inline int column_of(int j) {
    return (j / unit * group + member()) * unit + j % unit;
}

__device__ inline bool has_value(int j) {
    return column_of(j) < columns;
}

using Unit = Access<Element, unit * sizeof(Element)>::type;

// This thread's values of a row; what lies outside, or in a row that the tile lacks, is `outside`.
__device__ inline void read_row(float (&v)[values], const Matrices& matrices, const Tile& tile,
                                int row, float outside, int input = 0) {
    const Element* from = staged(matrices, tile, row < tile.rows ? row : 0, input);
#pragma unroll
    for (int k = 0; k < units; ++k) {
        if (row < tile.rows && has_value(k * unit)) {
            unpack(&v[k * unit], *reinterpret_cast<const Unit*>(from + column_of(k * unit)));
        } else {
#pragma unroll
            for (int i = 0; i < unit; ++i)
                v[k * unit + i] = outside;
        }
    }
}

// Put results where they leave from.
__device__ inline void write_row(const float (&v)[values], const Matrices& matrices,
                                 const Tile& tile, int row) {
    if (row >= tile.rows)
        return;
    Element* to = result(matrices, tile, row);
#pragma unroll
    for (int k = 0; k < units; ++k) {
        if (has_value(k * unit)) {
            Unit bits;
            pack_up(bits, &v[k * unit]);
            *reinterpret_cast<Unit*>(to + column_of(k * unit)) = bits;
        }
    }
}

// The parameters of this thread's columns, which are the same in all rows.
__device__ inline void read_parameters(float (&v)[values], const Element* parameters) {
#pragma unroll
    for (int j = 0; j < values; ++j)
        v[j] = has_value(j) ? float(parameters[column_of(j)]) : 0;
}

// What is kept of each row that this thread will have a part of.
template <typename T>
__device__ inline void read_of_rows(T (&v)[passes], const T* of_rows, const Tile& tile) {
#pragma unroll
    for (int pass = 0; pass < passes; ++pass)
        v[pass] = row_of_pass(pass) < tile.rows ? of_rows[tile.first + row_of_pass(pass)] : T(0);
}

// ---- agreement among the threads of a row

__shared__ float2 of_warps[2][warps];

// Combine one value (or pair) of each thread of a row; each of them gets the result. `round`
// counts the agreements, of which odd and even ones have places of their own.
template <typename Op, typename Value>
__device__ inline Value row_reduce(Value v, int& round) {
    v = warp_reduce<Op>(v);
    if constexpr (group > 32) {
        Value* results = reinterpret_cast<Value*>(of_warps[round++ % 2]);
        int lane = threadIdx.x % 32;
        if (lane == 0)
            results[threadIdx.x / 32] = v;
        __syncthreads();
        set(v, Op::neutral());
        if (lane < group_warps)
            v = results[threadIdx.x / group * group_warps + lane];
        v = warp_reduce<Op>(v);
    }
    return v;
}

// v = exp(v - the row's largest number); returns the row's sum of these, and that number.
__device__ inline float exponentials(float (&v)[values], float& largest, int& round) {
    largest = Max::neutral();
#pragma unroll
    for (int j = 0; j < values; ++j)
        largest = fmaxf(largest, v[j]);
    largest = row_reduce<Max>(largest, round);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < values; ++j) {
        v[j] = expf(v[j] - largest);
        sum += v[j];
    }
    return row_reduce<Add>(sum, round);
}

// ---- sums over rows

constexpr int sharers = group > 32 ? group : 32;  // threads that have one sum of each column

// The block's sums of each column over all rows that it had, in shared memory.
// All threads call it, behind `finish`.
__device__ inline void sum_columns(float* sums_of, float (&sums)[values]) {
    float* side_by_side = reinterpret_cast<float*>(shared_bytes);
#pragma unroll
    for (int j = 0; j < values; ++j) {
#pragma unroll
        for (int lanes = group; lanes < 32; lanes *= 2)
            sums[j] += shuffle(sums[j], lanes);
        if (threadIdx.x % sharers < group && has_value(j))
            side_by_side[threadIdx.x / sharers * columns + column_of(j)] = sums[j];
    }
    __syncthreads();
    for (int column = threadIdx.x; column < columns; column += threads) {
        float sum = 0;
#pragma unroll
        for (int n = 0; n < threads / sharers; ++n)
            sum += side_by_side[n * columns + column];
        sums_of[column] = sum;
    }
    __syncthreads();
}

// What sums over all rows are: partial ones are added up later, and keep their bits until then.
#if GATHER > 1
using Sum = Element;
#else
using Sum = float;
#endif

// Write one row of partial sums a block; or, where the blocks are one cluster, the sums themselves,
// each block those of its share of the columns.
template <int count>
__device__ inline void write_sums(Sum* const (&to)[count], float (&sums)[count][values]) {
#if GATHER == 1
#pragma unroll
    for (int n = 0; n < count; ++n)
        sum_columns(to[n] + blockIdx.x * static_cast<long long>(columns), sums[n]);
#else
    constexpr int side_by_side = threads / sharers;
    float* of_block = reinterpret_cast<float*>(shared_bytes) + side_by_side * columns;
#pragma unroll
    for (int n = 0; n < count; ++n)
        sum_columns(of_block + n * columns, sums[n]);
    cluster_sync();
    for (int c = blockIdx.x * threads + threadIdx.x; c < count * columns; c += GATHER * threads) {
        float sum = 0;
#pragma unroll
        for (int block = 0; block < GATHER; ++block)
            sum += remote(of_block + c, block);
        to[c / columns][c % columns] = Element(sum);
    }
    cluster_sync();  // nobody leaves whose sums are still read
#endif
}
