// expect: [peer-access]; line 8; mode: fast; devices: 2
// Device 0 may reach device 1; the other way needs a permission of its own.
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
    cudaDeviceEnablePeerAccess(1, 0);
    cudaDeviceSynchronize();
    cudaSetDevice(1);
    cudaMalloc(&b, n * sizeof(float));
    cudaMemset(b, 0, n * sizeof(float));
    add<<<4, 256>>>(b, a, n);
    cudaDeviceSynchronize();
}
