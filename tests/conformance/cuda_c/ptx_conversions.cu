// flags: -gencode=arch=compute_90a,code=sm_90a
// Conversions of inline PTX: clamped integers, rounding modes, small floats.
#include <cstdio>
__device__ int number = 0;
template <class T>
__device__ void keep(unsigned long long* out, T value) {
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    out[number++] = bits;
}
#define FROM_FLOAT(op, letter, type)             \
    {                                            \
        type d;                                  \
        asm(op " %0, %1;" : letter(d) : "f"(x)); \
        keep(out, d);                            \
    }
__global__ void all(unsigned long long* out, const float* values, int n) {
    for (int i = 0; i < n; ++i) {
        float x = values[i];
        FROM_FLOAT("cvt.rzi.s32.f32", "=r", int)
        FROM_FLOAT("cvt.rni.s32.f32", "=r", int)
        FROM_FLOAT("cvt.rmi.s32.f32", "=r", int)
        FROM_FLOAT("cvt.rpi.s32.f32", "=r", int)
        FROM_FLOAT("cvt.rzi.u32.f32", "=r", unsigned)
        FROM_FLOAT("cvt.rzi.s64.f32", "=l", long long)
        FROM_FLOAT("cvt.rzi.u64.f32", "=l", unsigned long long)
        FROM_FLOAT("cvt.rn.f16.f32", "=h", unsigned short)
        FROM_FLOAT("cvt.rz.f16.f32", "=h", unsigned short)
        FROM_FLOAT("cvt.rn.bf16.f32", "=h", unsigned short)
        FROM_FLOAT("cvt.rz.bf16.f32", "=h", unsigned short)
        FROM_FLOAT("cvt.rna.tf32.f32", "=r", unsigned)
        FROM_FLOAT("cvt.sat.f32.f32", "=f", float)
        unsigned short eight;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(eight) : "f"(1.0f), "f"(x));
        keep(out, eight);
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(eight) : "f"(x), "f"(0.0f));
        keep(out, eight);
        unsigned two;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(x), "f"(2.0f));
        keep(out, two);
    }
}
__global__ void all_codes(unsigned long long* out) {
    unsigned two;
    unsigned short codes = (unsigned short)(threadIdx.x | 0x3800);
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(two) : "h"(codes));
    out[threadIdx.x] = two;
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(two) : "h"(codes));
    out[256 + threadIdx.x] = two;
}

int main() {
    const float values[] = {
        0.0f,   0.5f,  1.5f,   2.5f,     -0.5f,        -1.5f,         3e9f,           3e10f,
        -3e10f, 1e20f, -1e20f, INFINITY, -INFINITY,    65504.0f,      65520.0f,       1e-7f,
        6e-8f,  0.1f,  448.0f, 464.0f,   0.001953125f, 1.0009765625f, 1.00048828125f, -3.14159f};
    const int n = sizeof values / 4;
    float* in;
    unsigned long long* out;
    cudaMallocManaged(&in, sizeof values);
    cudaMallocManaged(&out, 512 * 8);
    for (int i = 0; i < n; ++i)
        in[i] = values[i];
    all<<<1, 1>>>(out, in, n);
    if (cudaDeviceSynchronize())
        return 1;
    for (int i = 0; i < n * 16; ++i)
        printf("%llx%c", out[i], i % 16 == 15 ? '\n' : ' ');
    all_codes<<<1, 256>>>(out);
    if (cudaDeviceSynchronize())
        return 1;
    for (int i = 0; i < 512;
         ++i)  // 0x7f and 0xff of e4m3, above 0x7c of e5m2: NaN, whose bits are open
        if (!((i % 128) == 127 || (i >= 256 && i % 128 > 124)))
            printf("%llx ", out[i]);
    printf("\n");
    cudaFree(in);
    cudaFree(out);
}
