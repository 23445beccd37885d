// The norms' backward passes for rows that are long, and few or of no whole accesses: split in two.
//
// Where a row belongs to one group of threads, a few rows keep a few SMs busy, and a long row of
// gradients leaves no registers for the parameters' sums. So the work is cut across the columns:
// `row_sums` has each block add up a piece of some rows, and `gradients`, when all of a row's sums
// are known, computes each element on its own. The rows are read twice, few of them from L2. A
// thread has the same columns of all its rows, and adds up their gradients in passing.
//
// ELEMENT, a macro, is the type. `bytes` is how many a thread reads at once: rows begin at such
// places. `packs` are the accesses of a row that a thread makes. Without means it is RMS norm.
#define GROUP 32
#include "agree.cuh"
#include "elements.cuh"

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int batch = 32;  // rows whose sums a block holds at a time

// A thread's accesses of a row, and the columns that they hold.
template <int bytes, int packs>
struct Piece {
    using Pack = typename Access<Element, bytes>::type;
    static constexpr int pack = bytes / sizeof(Element);
    static constexpr int values = packs * pack;
    static constexpr int columns_of_block = threads * values;

    __device__ static int column_of(int k) {
        return blockIdx.x * columns_of_block + (k * threads + threadIdx.x) * pack;
    }

    // What is beyond the row becomes 0.
    __device__ static void read(float (&v)[values], const Element* row, int columns) {
#pragma unroll
        for (int k = 0; k < packs; ++k) {
            int column = column_of(k);
            if (column < columns) {
                unpack(&v[k * pack], *reinterpret_cast<const Pack*>(row + column));
            } else {
#pragma unroll
                for (int i = 0; i < pack; ++i)
                    v[k * pack + i] = 0;
            }
        }
    }

    __device__ static void write(Element* row, const float (&v)[values], int columns) {
#pragma unroll
        for (int k = 0; k < packs; ++k) {
            int column = column_of(k);
            if (column < columns) {
                Pack bits;
                pack_up(bits, &v[k * pack]);
                *reinterpret_cast<Pack*>(row + column) = bits;
            }
        }
    }
};

// The pairs of sums of a row's pieces.
__device__ inline float2* of_pieces(float* sums, int row, int pieces) {
    return reinterpret_cast<float2*>(sums) + static_cast<long long>(row) * pieces;
}

__device__ inline const float2* of_pieces(const float* sums, int row, int pieces) {
    return reinterpret_cast<const float2*>(sums) + static_cast<long long>(row) * pieces;
}

// sums[row][blockIdx.x] = the sums of g and of g * xhat over the block's columns, g = dy * gamma.
// Grid: pieces of a row, groups of rows. The rows of x and of dy are `stride` elements apart.
template <int bytes, int packs>
__global__ void __launch_bounds__(threads)
    row_sums(float* sums, const Element* dy, const Element* x, const Element* gamma,
             const float* means, const float* inverses, int rows, int columns, long long stride) {
    using P = Piece<bytes, packs>;
    __shared__ float2 of_warps[2][warps];
    float scale[P::values];
    P::read(scale, gamma, columns);
    int turn = 0;
    for (int row = blockIdx.y; row < rows; row += gridDim.y, turn ^= 1) {
        float mean = means ? means[row] : 0;
        float inverse = inverses[row];
        float xs[P::values];
        float g[P::values];
        P::read(xs, x + row * stride, columns);
        P::read(g, dy + row * stride, columns);
        float2 sum = {0, 0};
#pragma unroll
        for (int j = 0; j < P::values; ++j) {
            g[j] *= scale[j];
            sum.x += g[j];
            sum.y += g[j] * ((xs[j] - mean) * inverse);
        }
        sum = warp_reduce<Add>(sum);
        int lane = threadIdx.x % 32;
        if (lane == 0)
            of_warps[turn][threadIdx.x / 32] = sum;
        __syncthreads();  // one a row is enough: the next row's sums have another place
        if (threadIdx.x < 32) {
            sum = lane < warps ? of_warps[turn][lane] : float2{0, 0};
            sum = warp_reduce<Add>(sum);
            if (lane == 0)
                of_pieces(sums, row, gridDim.x)[blockIdx.x] = sum;
        }
    }
}

// What `gradients` needs of a row.
struct OfRow {
    float mean;
    float inverse;
    float mean_g;
    float mean_g_xhat;
};

// dx, and of each column the sums of dy * xhat and of dy over the rows of the block: `partial` rows
// of them, [2 or 1][gridDim.y][columns], or, where all rows are the block's, the results themselves.
// Grid: pieces of a row, groups of rows. `sums` has `pieces` of each row.
template <int bytes, int packs>
__global__ void __launch_bounds__(threads)
    gradients(Element* __restrict__ dx, float* partial, Element* results, const float* sums,
              int pieces, const Element* __restrict__ dy, const Element* __restrict__ x,
              const Element* gamma, const float* means, const float* inverses, int rows,
              int columns, long long stride) {
    using P = Piece<bytes, packs>;
    __shared__ OfRow of_rows[batch];
    float scale[P::values];
    P::read(scale, gamma, columns);
    float dgamma[P::values] = {};
    float dbeta[P::values] = {};
    int step = gridDim.y;
    for (int first = blockIdx.y; first < rows; first += batch * step) {
        __syncthreads();
        for (int n = threadIdx.x / 32; n < batch && first + n * step < rows; n += warps) {
            int row = first + n * step;
            float2 sum = {0, 0};
            for (int piece = threadIdx.x % 32; piece < pieces; piece += 32)
                sum = combine<Add>(sum, of_pieces(sums, row, pieces)[piece]);
            sum = warp_reduce<Add>(sum);
            float mean = means ? means[row] : 0;
            float mean_g = means ? sum.x / columns : 0;
            if (threadIdx.x % 32 == 0)
                of_rows[n] = {mean, inverses[row], mean_g, sum.y / columns};
        }
        __syncthreads();
        int here = min(batch, (rows - first + step - 1) / step);
#pragma unroll 4
        for (int n = 0; n < here; ++n) {  // some rows are on their way at once
            int row = first + n * step;
            OfRow of = of_rows[n];
            float xhat[P::values];
            float g[P::values];
            P::read(xhat, x + row * stride, columns);
            P::read(g, dy + row * stride, columns);
#pragma unroll
            for (int j = 0; j < P::values; ++j) {
                xhat[j] = (xhat[j] - of.mean) * of.inverse;
                dgamma[j] += g[j] * xhat[j];
                dbeta[j] += g[j];
                g[j] = of.inverse * (g[j] * scale[j] - of.mean_g - xhat[j] * of.mean_g_xhat);
            }
            P::write(dx + static_cast<long long>(row) * columns, g, columns);
        }
    }
    bool all = step == 1;
    float* to = partial + blockIdx.y * static_cast<long long>(columns);
#pragma unroll
    for (int j = 0; j < P::values; ++j) {
        int column = P::column_of(j / P::pack) + j % P::pack;
        if (column >= columns)
            continue;
        if (all)
            results[column] = Element(dgamma[j]);
        else
            to[column] = dgamma[j];
        if (means && all)
            results[columns + column] = Element(dbeta[j]);
        else if (means)
            to[static_cast<long long>(step) * columns + column] = dbeta[j];
    }
}
