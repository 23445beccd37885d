// Short rows, which begin anywhere: a tile of many whole rows passes through shared memory.
//
// A row of a few elements is no work for a warp, and where it is no whole number of accesses its
// threads would read piecemeal. The rows of a tile lie one behind the other, though, and together
// they are one long piece: the block's threads bring it in wide accesses, whoever's row they hold.
// Then a row's own threads take it from shared memory, and put the result in its place, which goes
// to global memory as it came. If there are gaps between rows, only the way in is narrower.
//
// The launcher compiles a file for one shape, as with fast.cuh:
//   ELEMENT  float, __nv_bfloat16 or __half   COLUMNS  of a row
//   THREADS  of a block                       GROUP    lanes that share a row: 1, 2, 4 ... 32
//   PASSES   rows of a tile that a group takes, one after the other
//   STRIDE   from one row to the next, in elements
//   ACCESS   bytes that a thread reads at once    BLOCKS   of an SM at a time
// INPUTS, arrays that are read together, is the file's own.
#pragma once
#include "agree.cuh"
#include "elements.cuh"

constexpr int columns = COLUMNS;
constexpr long long stride = STRIDE;
constexpr int threads = THREADS;
constexpr int group = GROUP;
constexpr int passes = PASSES;
constexpr int inputs = INPUTS;
constexpr int warps = threads / 32;
constexpr int groups = threads / group;  // rows that are worked on at once
constexpr int tile_rows = groups * passes;
constexpr int tile_elements = tile_rows * columns;

// Elements that a thread takes from shared memory at once.
constexpr int unit = columns % 2 == 0 ? 2 : 1;
constexpr int units = (columns / unit + group - 1) / group;
constexpr int values = units * unit;  // of a row that one thread keeps

using Unit = Access<Element, unit * sizeof(Element)>::type;
using In = Access<Element, ACCESS>::type;
using Out = Access<Element, 16>::type;
constexpr int in_pack = sizeof(In) / sizeof(Element);
constexpr int out_pack = sizeof(Out) / sizeof(Element);

static_assert(tile_elements % out_pack == 0, "a tile begins where an access does");
static_assert(stride == columns || columns % in_pack == 0, "no access spans two rows with a gap");

#define SHAPED __launch_bounds__(THREADS, BLOCKS)

extern __shared__ __align__(16) unsigned char shared_bytes[];

__device__ inline Element* staged(int input = 0) {
    return reinterpret_cast<Element*>(shared_bytes) + input * tile_elements;
}

// ---- a tile's way in and out

__device__ inline long long first_of_tile() {
    return blockIdx.x * static_cast<long long>(tile_rows);
}

// Rows of the tile that begins with row `first`: the last one has fewer.
__device__ inline int rows_of_tile(long long first, long long rows) {
    long long left = rows - first;
    return left < tile_rows ? int(left) : tile_rows;
}

// Where the tile's n-th access begins, counted in elements from its first row.
__device__ inline long long place_of(int n) {
    if (stride == columns)
        return n * in_pack;
    constexpr int row_packs = columns / in_pack > 0 ? columns / in_pack : 1;
    return n / row_packs * stride + n % row_packs * in_pack;
}

// Bring the rows of a tile. A barrier must follow before anybody reads them.
__device__ inline void bring(const Element* x, long long first, int rows, int input = 0) {
    constexpr int most = (tile_elements / in_pack + threads - 1) / threads;
    const Element* from = x + first * stride;
    In* to = reinterpret_cast<In*>(staged(input));
    int packs = rows * columns / in_pack;
    In held[most];  // all on their way before the first is needed
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
            to[n] = held[k];
    }
    int rest = packs * in_pack + threadIdx.x;  // only the last tile ends within an access
    if (rest < rows * columns)
        staged(input)[rest] = from[rest];
}

// Take a tile's results to global memory. A barrier must stand between the last write and this.
__device__ inline void take(Element* y, long long first, int rows) {
    constexpr int most = (tile_elements / out_pack + threads - 1) / threads;
    Element* to = y + first * columns;
    const Out* from = reinterpret_cast<const Out*>(staged());
    int packs = rows * columns / out_pack;
#pragma unroll
    for (int k = 0; k < most; ++k) {
        int n = k * threads + threadIdx.x;
        if (n < packs)
            __stcg(reinterpret_cast<Out*>(to) + n, from[n]);
    }
    int rest = packs * out_pack + threadIdx.x;
    if (rest < rows * columns)
        to[rest] = staged()[rest];
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

// This thread's values of a row; what lies outside, or in a row that the tile lacks, is `outside`.
__device__ inline void read_row(float (&v)[values], int row, int rows, float outside,
                                int input = 0) {
#pragma unroll
    for (int k = 0; k < units; ++k) {
        if (row < rows && has_value(k * unit)) {
            const Element* from = staged(input) + row * columns + column_of(k * unit);
            unpack(&v[k * unit], *reinterpret_cast<const Unit*>(from));
        } else {
#pragma unroll
            for (int i = 0; i < unit; ++i)
                v[k * unit + i] = outside;
        }
    }
}

// Put results where this thread's values of a row were.
__device__ inline void write_row(const float (&v)[values], int row, int rows) {
#pragma unroll
    for (int k = 0; k < units; ++k) {
        if (row < rows && has_value(k * unit)) {
            Unit bits;
            pack_up(bits, &v[k * unit]);
            *reinterpret_cast<Unit*>(staged() + row * columns + column_of(k * unit)) = bits;
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
__device__ inline void read_of_rows(T (&v)[passes], const T* of_rows, long long first, int rows) {
#pragma unroll
    for (int pass = 0; pass < passes; ++pass)
        v[pass] = row_of_pass(pass) < rows ? of_rows[first + row_of_pass(pass)] : T(0);
}

// v = exp(v - the row's largest number); returns the row's sum of these, and that number.
__device__ inline float exponentials(float (&v)[values], float& largest) {
    largest = Max::neutral();
#pragma unroll
    for (int j = 0; j < values; ++j)
        largest = fmaxf(largest, v[j]);
    largest = warp_reduce<Max>(largest);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < values; ++j) {
        v[j] = expf(v[j] - largest);
        sum += v[j];
    }
    return warp_reduce<Add>(sum);
}

// ---- sums over rows

// Write one row of partial sums a block: of each column over all rows that the block had.
// All threads call it, behind a barrier after the last use of the tile.
__device__ inline void write_partial_sums(float* partial, float (&sums)[values]) {
    float* of_warps = reinterpret_cast<float*>(shared_bytes);
#pragma unroll
    for (int j = 0; j < values; ++j) {
#pragma unroll
        for (int lanes = group; lanes < 32; lanes *= 2)
            sums[j] += shuffle(sums[j], lanes);
        if (threadIdx.x % 32 < group && has_value(j))
            of_warps[threadIdx.x / 32 * columns + column_of(j)] = sums[j];
    }
    __syncthreads();
    for (int column = threadIdx.x; column < columns; column += threads) {
        float sum = 0;
#pragma unroll
        for (int warp = 0; warp < warps; ++warp)
            sum += of_warps[warp * columns + column];
        partial[blockIdx.x * static_cast<long long>(columns) + column] = sum;
    }
    __syncthreads();
}
