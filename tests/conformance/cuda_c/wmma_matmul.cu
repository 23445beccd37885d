// Tensor cores: C = alpha A B + beta C with several warps, tiles that reach over the edges, and
// rows longer than a tile.
#include <cstdio>
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

const int M = 40, N = 24, K = 56,
          LD = 24;  // LD: a tile's row in shared memory, with 8 more numbers than are used

// One warp a tile of 16 x 16; beyond the edges there are zeros.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, float alpha,
                     float beta) {
    __shared__ __align__(32) __nv_bfloat16 tile_a[4][16 * LD], tile_b[4][16 * LD];
    __shared__ __align__(32) float tile_c[4][16 * LD];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = (blockIdx.y * 2 + warp / 2) * 16, column = (blockIdx.x * 2 + warp % 2) * 16;
    __nv_bfloat16 *ta = tile_a[warp], *tb = tile_b[warp];
    float* tc = tile_c[warp];
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, old;
    wmma::fill_fragment(sum, 0.0f);
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int i = lane; i < 256; i += 32) {
            int y = i / 16, x = i % 16;
            ta[y * LD + x] =
                row + y < M && k0 + x < K ? a[(row + y) * K + k0 + x] : __float2bfloat16(0.0f);
            tb[y * LD + x] = k0 + y < K && column + x < N ? b[(k0 + y) * N + column + x]
                                                          : __float2bfloat16(0.0f);
        }
        __syncwarp();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> fb;
        wmma::load_matrix_sync(fa, ta, LD);
        wmma::load_matrix_sync(fb, tb, LD);
        wmma::mma_sync(sum, fa, fb, sum);
        __syncwarp();
    }
    for (int i = lane; i < 256; i += 32)
        tc[i / 16 * LD + i % 16] = row + i / 16 < M && column + i % 16 < N
                                       ? c[(row + i / 16) * N + column + i % 16]
                                       : 0.0f;
    __syncwarp();
    wmma::load_matrix_sync(old, tc, LD, wmma::mem_row_major);
    for (int i = 0; i < sum.num_elements; i++)
        old.x[i] = alpha * sum.x[i] + beta * old.x[i];
    __syncwarp();
    wmma::store_matrix_sync(tc, old, LD, wmma::mem_row_major);
    __syncwarp();
    for (int i = lane; i < 256; i += 32)
        if (row + i / 16 < M && column + i % 16 < N)
            c[(row + i / 16) * N + column + i % 16] = tc[i / 16 * LD + i % 16];
}

int main() {
    __nv_bfloat16 *a, *b;
    float* c;
    cudaMallocManaged(&a, M * K * sizeof(__nv_bfloat16));
    cudaMallocManaged(&b, K * N * sizeof(__nv_bfloat16));
    cudaMallocManaged(&c, M * N * sizeof(float));
    for (int i = 0; i < M * K; i++)
        a[i] = __float2bfloat16(float(i % 9 - 4));
    for (int i = 0; i < K * N; i++)
        b[i] = __float2bfloat16(float(i % 11 - 5));
    for (int i = 0; i < M * N; i++)
        c[i] = float(i % 100);
    dim3 grid((N + 31) / 32, (M + 31) / 32);
    gemm<<<grid, 128>>>(a, b, c, 0.5f, 2.0f);
    gemm<<<grid, 128>>>(a, b, c, 1.0f, -1.0f);
    cudaDeviceSynchronize();
    for (int i = 0; i < M; i += 13) {
        for (int j = 0; j < N; j++)
            printf("%g ", c[i * N + j]);
        printf("\n");
    }
    double total = 0;
    for (int i = 0; i < M * N; i++)
        total += (i % 31) * c[i];
    printf("%.1f\n", total);
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
}
