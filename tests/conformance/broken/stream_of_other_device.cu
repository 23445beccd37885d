// expect: [wrong-device]; line 18; mode: fast; devices: 2
// After cudaSetDevice(1) a kernel is launched into a stream of device 0.
#include <cuda_runtime.h>

__global__ void add(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] += in[i];
}

int main() {
    const int n = 1000;
    float* a;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaSetDevice(1);
    cudaMalloc(&a, n * sizeof(float));
    add<<<4, 256, 0, stream>>>(a, a, n);
    cudaGetLastError();
    cudaFree(a);
}
