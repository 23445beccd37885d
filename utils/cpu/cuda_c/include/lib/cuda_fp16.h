// Half precision (IEEE binary16) on the CPU, bit for bit as the GPU rounds it: conversions, + - * /
// sqrt and fma are correctly rounded. The transcendental functions are computed in float and may
// differ from the GPU in the last bit. Names and meaning are those of CUDA's math API, "Half
// Precision Intrinsics".
#pragma once
#include "small_float.h"
#include "macros_aside.inc"

#define CUDA_CPU_H __half
#define CUDA_CPU_H2 __half2
#define CUDA_CPU_BITS half_bits
#define CUDA_CPU_VALUE half_value
#include "small_float.inc"
#undef CUDA_CPU_H
#undef CUDA_CPU_H2
#undef CUDA_CPU_BITS
#undef CUDA_CPU_VALUE

typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;

// ---- bits
__host__ __device__ inline unsigned short __half_as_ushort(__half h) {
    return h.__x;
}
__host__ __device__ inline short __half_as_short(__half h) {
    return short(h.__x);
}
__host__ __device__ inline __half __ushort_as_half(unsigned short bits) {
    __half h;
    h.__x = bits;
    return h;
}
__host__ __device__ inline __half __short_as_half(short bits) {
    return __ushort_as_half((unsigned short)bits);
}
#define CUDART_INF_FP16 __ushort_as_half(0x7C00u)
#define CUDART_NAN_FP16 __ushort_as_half(0x7FFFu)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7BFFu)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001u)
#define CUDART_ONE_FP16 __ushort_as_half(0x3C00u)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000u)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000u)
__host__ __device__ inline int __hisinf(__half h) {
    return h.__x == 0x7c00 ? 1 : h.__x == 0xfc00 ? -1 : 0;
}

// ---- from and to float and double
__host__ __device__ inline __half __float2half(float f) {
    return __half(f);
}
__host__ __device__ inline __half __float2half_rn(float f) {
    return __half(f);
}
__host__ __device__ inline __half __float2half_rz(float f) {
    return __ushort_as_half(::cuda_cpu::half_bits(double(f), ::cuda_cpu::toward_zero));
}
__host__ __device__ inline __half __float2half_ru(float f) {
    return __ushort_as_half(::cuda_cpu::half_bits(double(f), ::cuda_cpu::upward));
}
__host__ __device__ inline __half __float2half_rd(float f) {
    return __ushort_as_half(::cuda_cpu::half_bits(double(f), ::cuda_cpu::downward));
}
__host__ __device__ inline __half __double2half(double d) {
    return __half(d);
}
__host__ __device__ inline float __half2float(__half h) {
    return h;
}

// ---- from and to integers
#define CUDA_CPU_INTEGER(type, name)                                                    \
    __host__ __device__ inline type __half2##name##_rn(__half h) {                      \
        return ::cuda_cpu::to_integer<type>(h, ::cuda_cpu::nearest_even);               \
    }                                                                                   \
    __host__ __device__ inline type __half2##name##_rz(__half h) {                      \
        return ::cuda_cpu::to_integer<type>(h, ::cuda_cpu::toward_zero);                \
    }                                                                                   \
    __host__ __device__ inline type __half2##name##_ru(__half h) {                      \
        return ::cuda_cpu::to_integer<type>(h, ::cuda_cpu::upward);                     \
    }                                                                                   \
    __host__ __device__ inline type __half2##name##_rd(__half h) {                      \
        return ::cuda_cpu::to_integer<type>(h, ::cuda_cpu::downward);                   \
    }                                                                                   \
    __host__ __device__ inline __half __##name##2half_rn(type i) {                      \
        return __half(i);                                                               \
    }                                                                                   \
    __host__ __device__ inline __half __##name##2half_rz(type i) {                      \
        return __ushort_as_half(                                                        \
            ::cuda_cpu::half_bits(::cuda_cpu::odd_double(i), ::cuda_cpu::toward_zero)); \
    }                                                                                   \
    __host__ __device__ inline __half __##name##2half_ru(type i) {                      \
        return __ushort_as_half(                                                        \
            ::cuda_cpu::half_bits(::cuda_cpu::odd_double(i), ::cuda_cpu::upward));      \
    }                                                                                   \
    __host__ __device__ inline __half __##name##2half_rd(type i) {                      \
        return __ushort_as_half(                                                        \
            ::cuda_cpu::half_bits(::cuda_cpu::odd_double(i), ::cuda_cpu::downward));    \
    }
CUDA_CPU_INTEGER(short, short)
CUDA_CPU_INTEGER(unsigned short, ushort)
CUDA_CPU_INTEGER(int, int)
CUDA_CPU_INTEGER(unsigned, uint)
CUDA_CPU_INTEGER(long long, ll)
CUDA_CPU_INTEGER(unsigned long long, ull)
#undef CUDA_CPU_INTEGER

// ---- pairs
__host__ __device__ inline __half2 make_half2(__half low, __half high) {
    return __half2(low, high);
}
__host__ __device__ inline __half2 __halves2half2(__half low, __half high) {
    return __half2(low, high);
}
__host__ __device__ inline __half2 __half2half2(__half h) {
    return __half2(h, h);
}
__host__ __device__ inline __half2 __float2half2_rn(float f) {
    return __half2(__half(f), __half(f));
}
__host__ __device__ inline __half2 __floats2half2_rn(float a, float b) {
    return __half2(__half(a), __half(b));
}
__host__ __device__ inline __half2 __float22half2_rn(float2 v) {
    return __half2(__half(v.x), __half(v.y));
}
__host__ __device__ inline float2 __half22float2(__half2 v) {
    return make_float2(v.x, v.y);
}
__host__ __device__ inline __half __low2half(__half2 v) {
    return v.x;
}
__host__ __device__ inline __half __high2half(__half2 v) {
    return v.y;
}
__host__ __device__ inline __half2 __low2half2(__half2 v) {
    return __half2(v.x, v.x);
}
__host__ __device__ inline __half2 __high2half2(__half2 v) {
    return __half2(v.y, v.y);
}
__host__ __device__ inline __half2 __lowhigh2highlow(__half2 v) {
    return __half2(v.y, v.x);
}
__host__ __device__ inline __half2 __lows2half2(__half2 a, __half2 b) {
    return __half2(a.x, b.x);
}
__host__ __device__ inline __half2 __highs2half2(__half2 a, __half2 b) {
    return __half2(a.y, b.y);
}
#include "macros_back.inc"
