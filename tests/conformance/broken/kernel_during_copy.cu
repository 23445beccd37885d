// expect: [stream-race]; line 8; mode: check; devices: 2
// A kernel overwrites what a copy to the other device still reads.
#include <cuda_runtime.h>

__global__ void fill(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = i;
}

int main() {
    const int n = 1000;
    float *a, *b;
    cudaStream_t work, copies;
    cudaStreamCreate(&work);
    cudaStreamCreate(&copies);
    cudaMalloc(&a, n * sizeof(float));
    cudaMemset(a, 0, n * sizeof(float));
    cudaSetDevice(1);
    cudaMalloc(&b, n * sizeof(float));
    cudaSetDevice(0);
    cudaMemcpyPeerAsync(b, 1, a, 0, n * sizeof(float), copies);
    fill<<<4, 256, 0, work>>>(a, n);
    cudaDeviceSynchronize();
    cudaFree(a);
    cudaFree(b);
}
