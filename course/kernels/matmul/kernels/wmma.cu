// C = A B on the tensor cores through nvcuda::wmma: a warp multiplies tiles of 16 x 16, and the
// compiler keeps their registers.
// A (m x k), B (k x n), C (m x n): row-major, sums in float32. n and k are multiples of 8, for
// 16-byte loads. Grid: (ceil(n / BN), ceil(m / BM)), block: 256 threads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

#ifdef HALF  // the tensor cores of compute capability 7.x know no bfloat16
using number = __half;
#else
using number = __nv_bfloat16;
#endif

constexpr int BM = 128, BN = 128, BK = 32;  // the block's tile of C, and a step along k
constexpr int WM = 64, WN = 32;  // the warp's tile of C
constexpr int DOWN = WM / 16, ACROSS = WN / 16;
constexpr int WARPS_ACROSS = BN / WN;
constexpr int WARPS = BM / WM * WARPS_ACROSS;
constexpr int THREADS = 32 * WARPS;
constexpr int PAD = 8;  // 16 bytes more a row: neighbouring rows begin at other banks
constexpr int PITCH_A = BK + PAD, PITCH_B = BN + PAD;

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, number, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, number, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

struct Matrix {
    const number* data;
    int rows, columns;
};

// Copies the ROWS x COLUMNS tile at (row, column) to shared memory, 8 numbers at a time. What lies
// beyond the matrix's edges becomes zero.
template <int ROWS, int COLUMNS>
__device__ void load_tile(number* tile, Matrix from, int row, int column) {
    for (int i = threadIdx.x * 8; i < ROWS * COLUMNS; i += THREADS * 8) {
        int y = i / COLUMNS;
        int x = i % COLUMNS;
        bool inside = row + y < from.rows && column + x < from.columns;
        const number* source = from.data + (size_t)(row + y) * from.columns + column + x;
        uint4 eight = make_uint4(0, 0, 0, 0);
        if (inside)
            eight = *(const uint4*)source;
        *(uint4*)(tile + y * (COLUMNS + PAD) + x) = eight;
    }
}

// sum += 64 x 16 numbers of A times 16 x 32 of B, the whole warp together.
__device__ void multiply(Sum (&sum)[DOWN][ACROSS], const number* tile_a, const number* tile_b) {
    FragmentA a[DOWN];
    FragmentB b[ACROSS];
    for (int i = 0; i < DOWN; ++i)
        wmma::load_matrix_sync(a[i], tile_a + i * 16 * PITCH_A, PITCH_A);
    for (int j = 0; j < ACROSS; ++j)
        wmma::load_matrix_sync(b[j], tile_b + j * 16, PITCH_B);
    for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j)
            wmma::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
}

// Writes one fragment. It goes through shared memory, because CUDA does not say which lane holds
// which of its elements.
__device__ void store(number* c, const Sum& sum, float* result, int row, int column, int m, int n) {
    wmma::store_matrix_sync(result, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x % 32; i < 16 * 16; i += 32) {
        int y = row + i / 16;
        int x = column + i % 16;
        if (y < m && x < n)
            c[(size_t)y * n + x] = number(result[i]);
    }
    __syncwarp();
}

__global__ __launch_bounds__(THREADS) void matmul(number* c, const number* a, const number* b,
                                                  int m, int n, int k) {
    __shared__ __align__(32) number tile_a[BM * PITCH_A];
    __shared__ __align__(32) number tile_b[BK * PITCH_B];
    __shared__ __align__(32) float result[WARPS][16 * 16];
    int row = blockIdx.y * BM;
    int column = blockIdx.x * BN;
    int warp = threadIdx.x / 32;
    int warp_row = warp / WARPS_ACROSS * WM;  // within the block's tile
    int warp_column = warp % WARPS_ACROSS * WN;

    Sum sum[DOWN][ACROSS];
    for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j)
            wmma::fill_fragment(sum[i][j], 0.0f);

    for (int k0 = 0; k0 < k; k0 += BK) {
        load_tile<BM, BK>(tile_a, {a, m, k}, row, k0);
        load_tile<BK, BN>(tile_b, {b, k, n}, k0, column);
        __syncthreads();
        for (int kk = 0; kk < BK; kk += 16)
            multiply(sum, &tile_a[warp_row * PITCH_A + kk], &tile_b[kk * PITCH_B + warp_column]);
        __syncthreads();
    }

    for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j) {
            int y = row + warp_row + i * 16;
            int x = column + warp_column + j * 16;
            store(c, sum[i][j], result[warp], y, x, m, n);
        }
}
