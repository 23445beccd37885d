// Convolution and both its gradients as matrix products of which no matrix is ever made, on tensor
// cores through nvcuda::wmma (compute capability 7.0 and later). Whoever copies a tile to shared
// memory works out where its numbers lie in the tensors.
// x: N, H, W, C. w: K, R, S, C. y, dy: N, P, Q, K. C and K: multiples of 8, for 16-byte loads.
// Grid: (ceil(n / BN), ceil(m / BM)) of the product m x k times k x n, block: THREADS.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

#ifdef HALF  // the tensor cores of compute capability 7.x know no bfloat16
using number = __half;
#else
using number = __nv_bfloat16;
#endif

struct Sizes {
    int n, h, w, c;  // of x
    int k, side;  // filters, of side x side taps
    int p, q;  // of y
    int stride, padding, dilation;

    __device__ int taps() const {
        return side * side;
    }
};

// ---- the matrices, as functions: where does row `row` have its eight numbers from `column` on?

// im2col(x): a row a pixel of y; columns: taps, and within a tap channels.
struct PixelsOfX {
    const number* x;
    Sizes s;

    __device__ const number* operator()(int row, int column) const {
        if (row >= s.n * s.p * s.q || column >= s.taps() * s.c)
            return nullptr;
        int tap = column / s.c;
        int y = row / s.q % s.p * s.stride - s.padding + tap / s.side * s.dilation;
        int x = row % s.q * s.stride - s.padding + tap % s.side * s.dilation;
        if (y < 0 || y >= s.h || x < 0 || x >= s.w)
            return nullptr;
        int image = row / s.q / s.p;
        return this->x + (((size_t)image * s.h + y) * s.w + x) * s.c + column % s.c;
    }
};

// The same for the data gradient: a row a pixel of x; which pixel of y did it go to, by this tap?
struct PixelsOfDy {
    const number* dy;
    Sizes s;

    __device__ const number* operator()(int row, int column) const {
        if (row >= s.n * s.h * s.w || column >= s.taps() * s.k)
            return nullptr;
        int tap = column / s.k;
        int y = row / s.w % s.h + s.padding - tap / s.side * s.dilation;
        int x = row % s.w + s.padding - tap % s.side * s.dilation;
        if (y < 0 || x < 0 || y % s.stride || x % s.stride)
            return nullptr;  // beyond the edge, or between two strides
        y /= s.stride;
        x /= s.stride;
        if (y >= s.p || x >= s.q)
            return nullptr;
        int image = row / s.w / s.h;
        return dy + (((size_t)image * s.p + y) * s.q + x) * s.k + column % s.k;
    }
};

// w as it lies there: a row a filter; columns: taps, and within a tap channels.
struct Filters {
    const number* w;
    Sizes s;

    __device__ const number* operator()(int row, int column) const {
        int width = s.taps() * s.c;
        return row < s.k && column < width ? w + (size_t)row * width + column : nullptr;
    }
};

// w for the data gradient: a row a tap and a filter, a column a channel.
struct FiltersByTap {
    const number* w;
    Sizes s;

    __device__ const number* operator()(int row, int column) const {
        if (row >= s.taps() * s.k || column >= s.c)
            return nullptr;
        int tap = row / s.k;
        int filter = row % s.k;
        return w + ((size_t)filter * s.taps() + tap) * s.c + column;
    }
};

// dy as it lies there: a row a pixel, a column a filter.
struct Gradient {
    const number* dy;
    Sizes s;

    __device__ const number* operator()(int row, int column) const {
        bool inside = row < s.n * s.p * s.q && column < s.k;
        return inside ? dy + (size_t)row * s.k + column : nullptr;
    }
};

// ---- the product

constexpr int BM = 128, BN = 128, BK = 32;  // the block's tile of the result, and a step along k
constexpr int WM = 64, WN = 32;  // the warp's tile
constexpr int DOWN = WM / 16, ACROSS = WN / 16;
constexpr int WARPS_ACROSS = BN / WN;
constexpr int WARPS = BM / WM * WARPS_ACROSS;
constexpr int THREADS = 32 * WARPS;
constexpr int PAD = 8;  // 16 bytes more a row: neighbouring rows begin at other banks

template <bool TURNED>
struct Order {
    using type = wmma::row_major;
};
template <>
struct Order<true> {
    using type = wmma::col_major;
};

using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// A tile in shared memory, as large as both of its orientations need.
template <int A, int B>
struct Tile {
    static constexpr int LONG = A * (B + PAD), HIGH = B * (A + PAD);
    number data[LONG > HIGH ? LONG : HIGH];
};

// Copies ROWS x COLUMNS numbers at (row, column) to shared memory, eight at a time. Where a matrix
// has nothing there are zeros.
template <int ROWS, int COLUMNS, class Matrix>
__device__ void copy_tile(number* tile, const Matrix& from, int row, int column) {
    for (int i = threadIdx.x * 8; i < ROWS * COLUMNS; i += THREADS * 8) {
        int y = i / COLUMNS;
        int x = i % COLUMNS;
        const number* source = from(row + y, column + x);
        uint4 eight = make_uint4(0, 0, 0, 0);
        if (source)
            eight = *(const uint4*)source;
        *(uint4*)(tile + y * (COLUMNS + PAD) + x) = eight;
    }
}

// sum += a warp's 64 x 16 times 16 x 32. A turned matrix has its rows along k in the other way.
template <class OrderA, class OrderB>
__device__ void multiply(Sum (&sum)[DOWN][ACROSS], const number* a, int step_a, int pitch_a,
                         const number* b, int step_b, int pitch_b) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, number, OrderA> left[DOWN];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, number, OrderB> right[ACROSS];
    for (int i = 0; i < DOWN; ++i)
        wmma::load_matrix_sync(left[i], a + i * step_a, pitch_a);
    for (int j = 0; j < ACROSS; ++j)
        wmma::load_matrix_sync(right[j], b + j * step_b, pitch_b);
    for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j)
            wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
}

// Writes one fragment of a result with m rows of n numbers, through shared memory.
template <class Result>
__device__ void store(Result* c, const Sum& sum, float* result, int row, int column, int m, int n) {
    wmma::store_matrix_sync(result, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x % 32; i < 16 * 16; i += 32) {
        int y = row + i / 16;
        int x = column + i % 16;
        if (y < m && x < n)
            c[(size_t)y * n + x] = Result(result[i]);
    }
    __syncwarp();
}

// Which part of k a block adds up: all of it, or its share of the grid's third axis.
struct Part {
    int begin, end;

    __device__ Part(int k) {
        int steps = (k + BK - 1) / BK;
        int share = (steps + gridDim.z - 1) / gridDim.z * BK;
        begin = min(k, (int)blockIdx.z * share);
        end = min(k, begin + share);
    }
};

// c (m x n) = a (m x k) b (k x n). A_TURNED: `a` gives rows of k x m instead. B_TURNED: `b` gives
// rows of n x k.
template <bool A_TURNED, bool B_TURNED, class Result, class MatrixA, class MatrixB>
__device__ void product(Result* c, const MatrixA& a, const MatrixB& b, int m, int n, Part k) {
    __shared__ __align__(32) Tile<BM, BK> tile_a;
    __shared__ __align__(32) Tile<BN, BK> tile_b;
    __shared__ __align__(32) float result[WARPS][16 * 16];
    int row = blockIdx.y * BM;
    int column = blockIdx.x * BN;
    int warp_row = threadIdx.x / 32 / WARPS_ACROSS * WM;
    int warp_column = threadIdx.x / 32 % WARPS_ACROSS * WN;
    Sum sum[DOWN][ACROSS];
    for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j)
            wmma::fill_fragment(sum[i][j], 0.0f);

    constexpr int PITCH_A = (A_TURNED ? BM : BK) + PAD;
    constexpr int PITCH_B = (B_TURNED ? BK : BN) + PAD;
    constexpr int ROW_A = A_TURNED ? 1 : PITCH_A;  // from one row of a to the next in the tile
    constexpr int COLUMN_A = A_TURNED ? PITCH_A : 1;
    constexpr int ROW_B = B_TURNED ? 1 : PITCH_B;
    constexpr int COLUMN_B = B_TURNED ? PITCH_B : 1;
    for (int k0 = k.begin; k0 < k.end; k0 += BK) {
        if constexpr (A_TURNED)
            copy_tile<BK, BM>(tile_a.data, a, k0, row);
        else
            copy_tile<BM, BK>(tile_a.data, a, row, k0);
        if constexpr (B_TURNED)
            copy_tile<BN, BK>(tile_b.data, b, column, k0);
        else
            copy_tile<BK, BN>(tile_b.data, b, k0, column);
        __syncthreads();
        for (int kk = 0; kk < BK; kk += 16) {
            const number* left = tile_a.data + warp_row * ROW_A + kk * COLUMN_A;
            const number* right = tile_b.data + kk * ROW_B + warp_column * COLUMN_B;
            multiply<typename Order<A_TURNED>::type, typename Order<B_TURNED>::type>(
                sum, left, 16 * ROW_A, PITCH_A, right, 16 * COLUMN_B, PITCH_B);
        }
        __syncthreads();
    }
    float* own = result[threadIdx.x / 32];
    for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j)
            store(c, sum[i][j], own, row + warp_row + i * 16, column + warp_column + j * 16, m, n);
}

// ---- the three products

__global__ __launch_bounds__(THREADS) void forward(number* y, const number* x, const number* w,
                                                   const Sizes s) {
    PixelsOfX pixels{x, s};
    Filters filters{w, s};
    product<false, true>(y, pixels, filters, s.n * s.p * s.q, s.k, Part(s.taps() * s.c));
}

__global__ __launch_bounds__(THREADS) void data_gradient(number* dx, const number* dy,
                                                         const number* w, const Sizes s) {
    PixelsOfDy pixels{dy, s};
    FiltersByTap filters{w, s};
    product<false, false>(dx, pixels, filters, s.n * s.h * s.w, s.c, Part(s.taps() * s.k));
}

__global__ __launch_bounds__(THREADS) void weights_gradient(number* dw, const number* dy,
                                                            const number* x, const Sizes s) {
    Gradient gradient{dy, s};
    PixelsOfX pixels{x, s};
    product<true, false>(dw, gradient, pixels, s.k, s.taps() * s.c, Part(s.n * s.p * s.q));
}

// The same in parts, which are to be added up: there are few weights and many pixels. Part z, in
// float32, is the sum over the z-th share of the pixels.
__global__ __launch_bounds__(THREADS) void weights_gradient_parts(float* parts, const number* dy,
                                                                  const number* x, const Sizes s) {
    Gradient gradient{dy, s};
    PixelsOfX pixels{x, s};
    int columns = s.taps() * s.c;
    float* own = parts + (size_t)blockIdx.z * s.k * columns;
    product<true, false>(own, gradient, pixels, s.k, columns, Part(s.n * s.p * s.q));
}
