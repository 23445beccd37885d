// bfloat16 on the CPU: the upper 16 bits of a float, rounded to nearest even. Conversions, + - * /
// sqrt and fma are correctly rounded; the transcendental functions may differ from the GPU in the
// last bit.
// Names and
// meaning are those of CUDA's math API, "Bfloat16 Precision Intrinsics".
#pragma once
#include "small_float.h"
#include "macros_aside.inc"

#define CUDA_CPU_H __nv_bfloat16
#define CUDA_CPU_H2 __nv_bfloat162
#define CUDA_CPU_BITS bfloat16_bits
#define CUDA_CPU_VALUE bfloat16_value
#include "small_float.inc"
#undef CUDA_CPU_H
#undef CUDA_CPU_H2
#undef CUDA_CPU_BITS
#undef CUDA_CPU_VALUE

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

// ---- bits
__host__ __device__ inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) {
    return h.__x;
}
__host__ __device__ inline short __bfloat16_as_short(__nv_bfloat16 h) {
    return short(h.__x);
}
__host__ __device__ inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
    __nv_bfloat16 h;
    h.__x = bits;
    return h;
}
__host__ __device__ inline __nv_bfloat16 __short_as_bfloat16(short bits) {
    return __ushort_as_bfloat16((unsigned short)bits);
}
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7F80u)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7FFFu)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7F7Fu)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3F80u)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000u)
__host__ __device__ inline int __hisinf(__nv_bfloat16 h) {
    return h.__x == 0x7f80 ? 1 : h.__x == 0xff80 ? -1 : 0;
}

// ---- from and to float, double, integers
__host__ __device__ inline __nv_bfloat16 __float2bfloat16(float f) {
    return __nv_bfloat16(f);
}
__host__ __device__ inline __nv_bfloat16 __float2bfloat16_rn(float f) {
    return __nv_bfloat16(f);
}
__host__ __device__ inline __nv_bfloat16 __float2bfloat16_rz(float f) {
    return __ushort_as_bfloat16(::cuda_cpu::bfloat16_bits(double(f), ::cuda_cpu::toward_zero));
}
__host__ __device__ inline __nv_bfloat16 __float2bfloat16_ru(float f) {
    return __ushort_as_bfloat16(::cuda_cpu::bfloat16_bits(double(f), ::cuda_cpu::upward));
}
__host__ __device__ inline __nv_bfloat16 __float2bfloat16_rd(float f) {
    return __ushort_as_bfloat16(::cuda_cpu::bfloat16_bits(double(f), ::cuda_cpu::downward));
}
__host__ __device__ inline __nv_bfloat16 __double2bfloat16(double d) {
    return __nv_bfloat16(d);
}
__host__ __device__ inline float __bfloat162float(__nv_bfloat16 h) {
    return h;
}
__host__ __device__ inline __nv_bfloat16 __int2bfloat16_rn(int i) {
    return __nv_bfloat16(i);
}
__host__ __device__ inline __nv_bfloat16 __uint2bfloat16_rn(unsigned i) {
    return __nv_bfloat16(i);
}
__host__ __device__ inline __nv_bfloat16 __ll2bfloat16_rn(long long i) {
    return __nv_bfloat16(i);
}
__host__ __device__ inline int __bfloat162int_rn(__nv_bfloat16 h) {
    return ::cuda_cpu::to_integer<int>(h, ::cuda_cpu::nearest_even);
}
__host__ __device__ inline int __bfloat162int_rz(__nv_bfloat16 h) {
    return ::cuda_cpu::to_integer<int>(h, ::cuda_cpu::toward_zero);
}

// ---- pairs
__host__ __device__ inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
    return __nv_bfloat162(low, high);
}
__host__ __device__ inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low,
                                                             __nv_bfloat16 high) {
    return __nv_bfloat162(low, high);
}
__host__ __device__ inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 h) {
    return __nv_bfloat162(h, h);
}
__host__ __device__ inline __nv_bfloat162 __float2bfloat162_rn(float f) {
    return __nv_bfloat162(__nv_bfloat16(f), __nv_bfloat16(f));
}
__host__ __device__ inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b));
}
__host__ __device__ inline __nv_bfloat162 __float22bfloat162_rn(float2 v) {
    return __floats2bfloat162_rn(v.x, v.y);
}
__host__ __device__ inline float2 __bfloat1622float2(__nv_bfloat162 v) {
    return make_float2(v.x, v.y);
}
__host__ __device__ inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) {
    return v.x;
}
__host__ __device__ inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) {
    return v.y;
}
__host__ __device__ inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) {
    return __nv_bfloat162(v.x, v.x);
}
__host__ __device__ inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) {
    return __nv_bfloat162(v.y, v.y);
}
__host__ __device__ inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) {
    return __nv_bfloat162(v.y, v.x);
}
__host__ __device__ inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.x, b.x);
}
__host__ __device__ inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.y, b.y);
}
#include "macros_back.inc"
