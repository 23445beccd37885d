// No bank conflicts: rows of A's tile are PAD longer, and a thread's eight rows and columns are two
// groups of four, half a tile apart, so that eight neighbouring threads read 128 bytes in a row.
#include "products.cuh"
#include "write_four.cuh"
constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = (BM / TM) * (BN / TN);

__global__ __launch_bounds__(THREADS) void matmul(float* c, const float* a, const float* b, int m,
                                                  int n, int k) {
    constexpr int PAD = 4;  // a multiple of 4 keeps rows at multiples of 16 bytes
    __shared__ __align__(16) float tile_a[BK][BM + PAD], tile_b[BK][BN];  // A's: turned
    int t = threadIdx.x;
    int top = blockIdx.y * BM, left = blockIdx.x * BN;
    int row = t / (BN / TN) * 4, col = t % (BN / TN) * 4;
    alignas(16) float sum[TM][TN] = {}, from_a[TM], from_b[TN];
    for (int k0 = 0; k0 < k; k0 += BK) {
        int y = t / (BK / 4), x = t % (BK / 4) * 4;
        turn(tile_a, y, x, read_four(a, top + y, k0 + x, m, k));
        y = t / (BN / 4), x = t % (BN / 4) * 4;
        four(tile_b[y][x]) = read_four(b, k0 + y, left + x, k, n);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < BK; i++) {
            read_fours(from_a, tile_a[i][row], BM / 2);
            read_fours(from_b, tile_b[i][col], BN / 2);
            add_products(sum, from_a, from_b);
        }
        __syncthreads();
    }
    for (int y = 0; y < TM; y++)
        for (int x = 0; x < TN; x += 4)
            write_four(c, top + row + y / 4 * (BM / 2) + y % 4, left + col + x / 4 * (BN / 2), m, n,
                       four(sum[y][x]));
}
