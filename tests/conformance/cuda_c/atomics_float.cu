// Atomic adds of float, double, half and half2, in global and in shared memory; sums that are exact
// in any order.
#include <cstdio>
#include <cuda_fp16.h>

__global__ void work(float* f, double* d, __half* h, __half2* h2) {
    __shared__ float in_shared;
    if (threadIdx.x == 0)
        in_shared = 0;
    __syncthreads();
    atomicAdd(f, 0.25f);
    atomicAdd(d, 0.125);
    atomicAdd(&in_shared, 2.0f);
    if (threadIdx.x < 10) {
        atomicAdd(h, __float2half(1.5f));
        atomicAdd(h2, __floats2half2_rn(1.0f, -2.0f));
    }
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&f[1], in_shared), atomicExch(&f[2], 8.5f);
}

int main() {
    float* f;
    double* d;
    __half* h;
    __half2* h2;
    cudaMallocManaged(&f, 3 * sizeof(float));
    cudaMallocManaged(&d, sizeof(double));
    cudaMallocManaged(&h, sizeof(__half));
    cudaMallocManaged(&h2, sizeof(__half2));
    f[0] = 1, f[1] = 2, f[2] = 0, *d = -1, *h = __float2half(0.0f), *h2 = __float2half2_rn(0.0f);
    work<<<5, 100>>>(f, d, h, h2);
    cudaDeviceSynchronize();
    printf("%g %g %g %g %g %g %g\n", f[0], f[1], f[2], *d, __half2float(*h), __low2float(*h2),
           __high2float(*h2));
    cudaFree(f);
    cudaFree(d);
    cudaFree(h);
    cudaFree(h2);
}
