// Occupancy calls: bounds that hold on every machine.
#include <cstdio>

__global__ void simple(float* p) {
    p[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void heavy(float* p) {
    __shared__ float cache[8 * 1024];
    cache[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = cache[blockDim.x - 1 - threadIdx.x];
}

int main() {
    int blocks = 0, fewer = 0, grid = 0, block = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, simple, 1024, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fewer, heavy, 64, 0);
    printf("%d %d\n", blocks >= 1 && blocks <= 2, fewer >= 1 && fewer <= 8);
    cudaOccupancyMaxPotentialBlockSize(&grid, &block, simple, 0, 0);
    printf("%d %d %d\n", grid >= 1, block % 32, block >= 256 && block <= 1024);
    cudaFuncAttributes a;
    cudaFuncGetAttributes(&a, heavy);
    printf("%zu %d\n", a.sharedSizeBytes,
           a.maxThreadsPerBlock <= 1024 && a.maxThreadsPerBlock >= 64);
}
