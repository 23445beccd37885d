// Tiled matrix product with shared memory, for a size that is no multiple of the tile.
#include <cstdio>
#define TILE 8

__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < k; t += TILE) {
        as[threadIdx.y][threadIdx.x] =
            row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.0f;
        bs[threadIdx.y][threadIdx.x] =
            t + threadIdx.y < k && col < n ? b[(t + threadIdx.y) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

int main() {
    const int m = 19, n = 13, k = 21;
    float *a, *b, *c;
    cudaMallocManaged(&a, m * k * sizeof(float));
    cudaMallocManaged(&b, k * n * sizeof(float));
    cudaMallocManaged(&c, m * n * sizeof(float));
    for (int i = 0; i < m * k; i++)
        a[i] = i % 7 - 3;
    for (int i = 0; i < k * n; i++)
        b[i] = i % 5 - 2;
    dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    matmul<<<grid, block>>>(a, b, c, m, n, k);
    cudaDeviceSynchronize();
    for (int r : {0, 9, 18})
        for (int j : {0, 6, 12})
            printf("%g ", c[r * n + j]);
    double sum = 0;
    for (int i = 0; i < m * n; i++)
        sum += c[i] * (i % 3 + 1);
    printf("%g\n", sum);
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
}
