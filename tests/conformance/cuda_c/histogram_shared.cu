// A histogram with atomics in shared memory, merged with atomics in global memory.
#include <cstdio>

__global__ void histogram(const unsigned char* data, int n, unsigned* bins) {
    __shared__ unsigned local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[data[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (local[b])
            atomicAdd(&bins[b], local[b]);
}

int main() {
    const int n = 20000;
    unsigned char* data;
    unsigned* bins;
    cudaMallocManaged(&data, n);
    cudaMallocManaged(&bins, 256 * sizeof(unsigned));
    unsigned expected[256] = {}, state = 1;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (state >> 24) & (state >> 16);
        expected[data[i]]++;
    }
    cudaMemset(bins, 0, 256 * sizeof(unsigned));
    histogram<<<6, 192>>>(data, n, bins);
    cudaDeviceSynchronize();
    int wrong = 0;
    for (int b = 0; b < 256; b++)
        wrong += bins[b] != expected[b];
    printf("%d wrong, bins 0, 1, 255: %u %u %u\n", wrong, bins[0], bins[1], bins[255]);
    cudaFree(data);
    cudaFree(bins);
}
