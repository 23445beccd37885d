// flags: -rdc=true
// Nested launches into the tail and fire-and-forget streams, of a template, with dynamic shared
// memory.
#include <cstdio>

__global__ void last(int* out) {
    out[0] = out[1] + out[2];
}

template <int N>
__global__ void fill(int* out) {
    extern __shared__ int cache[];
    cache[threadIdx.x] = N + threadIdx.x;
    __syncthreads();
    atomicAdd(out, cache[blockDim.x - 1 - threadIdx.x]);
}

__global__ void parent(int* out) {
    if (threadIdx.x == 0) {
        last<<<1, 1, 0, cudaStreamTailLaunch>>>(out);  // after the parent and all that it started
        fill<10><<<2, 4, 4 * sizeof(int), cudaStreamFireAndForget>>>(out + 1);
        fill<100><<<1, 8, 8 * sizeof(int)>>>(out + 2);
    }
}

int main() {
    int* out;
    cudaMallocManaged(&out, 3 * sizeof(int));
    out[0] = out[1] = out[2] = 0;
    parent<<<1, 32>>>(out);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    printf("%d %d %d\n", out[0], out[1], out[2]);
    cudaFree(out);
}
