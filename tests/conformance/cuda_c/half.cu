// Half precision: conversions round to nearest even, arithmetic, comparisons, special values.
#include <cstdio>
#include <cuda_fp16.h>

__global__ void work(float* out, unsigned short* bits) {
    int i = 0;
    __half a = __float2half(1.5f), b = __float2half(2.25f);
    out[i++] = __half2float(__hadd(a, b));
    out[i++] = __half2float(a * b - b);
    out[i++] = __half2float(__hfma(a, b, b));
    out[i++] = __half2float(__hdiv(a, b));
    out[i++] = __half2float(hsqrt(b));
    out[i++] = float(__hneg(a));
    out[i++] = __hlt(a, b) + 2 * __hge(a, b) + 4 * (a != b);
    out[i++] = __half2float(__hmax(a, b)) + __half2float(__habs(__float2half(-8.0f)));
    out[i++] = __half2int_rn(__float2half(2.5f)) + 10 * __half2int_rz(__float2half(2.9f));
    out[i++] = __half2float(__int2half_rn(2049));
    out[i++] = __half2float(__hsub(__float2half(2048.0f), __float2half(0.5f)));
    out[i++] = __hisnan(__hsub(__ushort_as_half(0x7C00), __ushort_as_half(0x7C00))) +
               2 * __hisinf(__float2half(1e6f));
    __half c = a;
    c += b;
    c *= __float2half(2.0f);
    out[i++] = __half2float(c);
    int j = 0;
    for (float x : {1.0f, 0.1f, 65504.0f, 65519.0f, 65520.0f, 6.1e-5f, 5.97e-8f, 2.9e-8f, -0.0f,
                    1.00048828125f, 1.00146484375f})
        bits[j++] = __half_as_ushort(__float2half(x));
    bits[j++] = __half_as_ushort(__float2half_rz(0.1f));
    bits[j++] = __half_as_ushort(__float2half_ru(0.1f));
    bits[j++] = __half_as_ushort(__float2half_rd(0.1f));
    bits[j++] = __half_as_ushort(__double2half(1.0 / 3.0));
}

int main() {
    float* out;
    unsigned short* bits;
    cudaMallocManaged(&out, 13 * sizeof(float));
    cudaMallocManaged(&bits, 15 * sizeof(unsigned short));
    work<<<1, 1>>>(out, bits);
    cudaDeviceSynchronize();
    for (int i = 0; i < 13; i++)
        printf("%g ", out[i]);
    printf("\n");
    for (int i = 0; i < 15; i++)
        printf("%04x ", bits[i]);
    printf("\n%zu %g\n", sizeof(__half), __half2float(__float2half(3.14159f)));
    cudaFree(out);
    cudaFree(bits);
}
