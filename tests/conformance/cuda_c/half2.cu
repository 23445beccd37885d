// Pairs of halves: packing, arithmetic on both, horizontal access, and half in memory.
#include <cstdio>
#include <cuda_fp16.h>

__global__ void axpy(half2* y, const half2* x, float a) {
    int i = threadIdx.x;
    y[i] = __hfma2(__float2half2_rn(a), x[i], y[i]);
}

__global__ void mixed(float* out) {
    half2 v = __floats2half2_rn(1.5f, -2.0f),
          w = __halves2half2(__float2half(4.0f), __float2half(0.25f));
    float2 sum = __half22float2(__hadd2(v, w)), product = __half22float2(v * w);
    out[0] = sum.x, out[1] = sum.y, out[2] = product.x, out[3] = product.y;
    out[4] = __low2float(w), out[5] = __high2float(w);
    half2 swapped = __lowhigh2highlow(v);
    out[6] = __half2float(swapped.x), out[7] = __half2float(__high2half(swapped));
    out[8] = __hbgt2(w, v), out[9] = __half2float(__low2half(__hmax2(v, w)));
}

int main() {
    half2 *x, *y;
    float* out;
    cudaMallocManaged(&x, 4 * sizeof(half2));
    cudaMallocManaged(&y, 4 * sizeof(half2));
    cudaMallocManaged(&out, 10 * sizeof(float));
    for (int i = 0; i < 4; i++) {
        x[i] = __floats2half2_rn(i, i + 0.5f);
        y[i] = __float2half2_rn(10.0f);
    }
    axpy<<<1, 4>>>(y, x, 2.0f);
    mixed<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; i++)
        printf("%g %g ", __low2float(y[i]), __high2float(y[i]));
    printf("\n");
    for (int i = 0; i < 10; i++)
        printf("%g ", out[i]);
    printf("\n");
    cudaFree(x);
    cudaFree(y);
    cudaFree(out);
}
