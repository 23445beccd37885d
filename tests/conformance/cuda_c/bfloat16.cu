// bfloat16: rounding, arithmetic, pairs, and what its eight bits of precision lose.
#include <cstdio>
#include <cuda_bf16.h>

__global__ void work(float* out, unsigned short* bits) {
    __nv_bfloat16 a = __float2bfloat16(1.5f), b = __float2bfloat16(2.25f);
    int i = 0;
    out[i++] = __bfloat162float(a + b);
    out[i++] = __bfloat162float(a * b);
    out[i++] = __bfloat162float(__hfma(a, b, a));
    out[i++] = __bfloat162float(__hsub(a, b));
    out[i++] = __bfloat162float(__float2bfloat16(257.0f));
    out[i++] = __bfloat162float(__float2bfloat16(259.0f));
    out[i++] = (a < b) + 2 * (a == b) + 4 * __hgt(b, a);
    __nv_bfloat162 v = __floats2bfloat162_rn(1.0f, 2.0f), w = __float2bfloat162_rn(0.5f);
    out[i++] = __low2float(__hadd2(v, w));
    out[i++] = __high2float(v * w);
    out[i++] = __bfloat162float(__float2bfloat16(3.0e38f)) > 2.9e38f;
    int j = 0;
    for (float x : {1.0f, 0.1f, -3.14159f, 1.00390625f, 1.01171875f, 1e-40f})
        bits[j++] = __bfloat16_as_ushort(__float2bfloat16(x));
}

int main() {
    float* out;
    unsigned short* bits;
    cudaMallocManaged(&out, 10 * sizeof(float));
    cudaMallocManaged(&bits, 6 * sizeof(unsigned short));
    work<<<1, 1>>>(out, bits);
    cudaDeviceSynchronize();
    for (int i = 0; i < 10; i++)
        printf("%g ", out[i]);
    printf("\n");
    for (int i = 0; i < 6; i++)
        printf("%04x ", bits[i]);
    printf("\n");
    cudaFree(out);
    cudaFree(bits);
}
