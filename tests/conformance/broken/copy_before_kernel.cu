// expect: [stream-race]; line 22; mode: check; devices: 2
// A peer copy does not wait for the kernel that makes what it copies.
#include <cuda_runtime.h>

__global__ void fill(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = i;
}

int main() {
    const int n = 1000;
    float *a, *b;
    cudaStream_t here, there;
    cudaMalloc(&a, n * sizeof(float));
    cudaStreamCreate(&here);
    cudaSetDevice(1);
    cudaMalloc(&b, n * sizeof(float));
    cudaStreamCreate(&there);
    cudaSetDevice(0);
    fill<<<4, 256, 0, here>>>(a, n);
    cudaMemcpyPeerAsync(b, 1, a, 0, n * sizeof(float), there);
    cudaStreamSynchronize(there);
    cudaStreamSynchronize(here);
    cudaFree(a);
    cudaFree(b);
}
