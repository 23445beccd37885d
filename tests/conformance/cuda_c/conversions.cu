// Conversions with explicit rounding, and reinterpretations.
#include <cstdio>

__global__ void work(long long* out, float* f) {
    int i = 0;
    for (float x : {2.5f, -2.5f, 3.5f, 1e20f, -1e20f}) {
        out[i++] = __float2int_rn(x);
        out[i++] = __float2int_rz(x);
        out[i++] = __float2int_ru(x);
        out[i++] = __float2int_rd(x);
        out[i++] = __float2uint_rn(x);
        out[i++] = __float2ll_rz(x);
    }
    out[i++] = __float2int_rn(nanf(""));
    out[i++] = __double2int_rn(-7.5);
    out[i++] = __double2ll_rd(-7.5);
    out[i++] = __double2uint_rz(-7.5);
    out[i++] = __float_as_int(-1.0f);
    out[i++] = __float_as_uint(1.5f);
    out[i++] = __double_as_longlong(1.0);
    out[i++] = __double2hiint(-2.0);
    out[i++] = __double2loint(0.1);
    out[i++] = __double_as_longlong(__hiloint2double(0x3FF80000, 0));
    int j = 0;
    f[j++] = __int_as_float(0x40490FDB);
    f[j++] = __uint_as_float(0x3F800000u);
    f[j++] = (float)__longlong_as_double(0x4008000000000000LL);
    f[j++] = __int2float_rn(16777217), f[j++] = __int2float_ru(16777217),
    f[j++] = __uint2float_rz(4294967295u);
    f[j++] = __double2float_rd(0.1), f[j++] = __double2float_ru(0.1);
    f[j++] = __fadd_ru(1.0f, 1e-20f), f[j++] = __fadd_rz(1.0f, -1e-20f),
    f[j++] = __fmul_rd(1.1f, 1.1f), f[j++] = __fmul_ru(1.1f, 1.1f);
    f[j++] = __fdiv_rn(1.0f, 3.0f), f[j++] = __fsqrt_rn(2.0f), f[j++] = __frcp_rn(3.0f),
    f[j++] = __fmaf_rn(1.1f, 1.1f, -1.21f);
}

int main() {
    long long* out;
    float* f;
    cudaMallocManaged(&out, 40 * sizeof(long long));
    cudaMallocManaged(&f, 16 * sizeof(float));
    work<<<1, 1>>>(out, f);
    cudaDeviceSynchronize();
    for (int i = 0; i < 40; i++)
        printf("%lld%c", out[i], i % 6 == 5 || i == 39 ? '\n' : ' ');
    for (int i = 0; i < 16; i++)
        printf("%.9g%c", f[i], i % 4 == 3 ? '\n' : ' ');
    cudaFree(out);
    cudaFree(f);
}
