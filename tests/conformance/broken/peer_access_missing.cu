// expect: [peer-access]; line 8; mode: fast; devices: 2
// A kernel of device 0 reads memory of device 1 without permission.
#include <cuda_runtime.h>

__global__ void add(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] += in[i];
}

int main() {
    const int n = 1000;
    float *a, *b;
    cudaMalloc(&a, n * sizeof(float));
    cudaMemset(a, 0, n * sizeof(float));
    cudaSetDevice(1);
    cudaMalloc(&b, n * sizeof(float));
    cudaMemset(b, 0, n * sizeof(float));
    cudaDeviceSynchronize();
    cudaSetDevice(0);
    add<<<4, 256>>>(a, b, n);
    cudaDeviceSynchronize();
}
