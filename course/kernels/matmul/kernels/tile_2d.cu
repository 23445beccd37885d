#include "fetch.cuh"
#include "products.cuh"
constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = (BM / TM) * (BN / TN);

__global__ __launch_bounds__(THREADS) void matmul(float* c, const float* a, const float* b, int m,
                                                  int n, int k) {
    __shared__ float tile_a[BM][BK];
    __shared__ float tile_b[BK][BN];
    int top = blockIdx.y * BM, left = blockIdx.x * BN;
    int row = threadIdx.x / (BN / TN) * TM, col = threadIdx.x % (BN / TN) * TN;
    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < k; k0 += BK) {
        fetch<THREADS>(tile_a, a, top, k0, m, k);
        fetch<THREADS>(tile_b, b, k0, left, k, n);
        __syncthreads();
        for (int i = 0; i < BK; i++) {
            float from_a[TM], from_b[TN];  // registers, as these loops are unrolled
            for (int y = 0; y < TM; y++)
                from_a[y] = tile_a[row + y][i];
            for (int x = 0; x < TN; x++)
                from_b[x] = tile_b[i][col + x];
            add_products(sum, from_a, from_b);
        }
        __syncthreads();
    }
    for (int y = 0; y < TM; y++)
        for (int x = 0; x < TN; x++)
            store(c, top + row + y, left + col + x, m, n, sum[y][x]);
}
