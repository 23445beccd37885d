// Complex numbers as pairs: CUDA's cuComplex.h.
#pragma once
#include "macros_aside.inc"
typedef float2 cuFloatComplex;
typedef float2 cuComplex;
typedef double2 cuDoubleComplex;

#define CUDA_CPU_COMPLEX(C, R, suffix, make)                                         \
    __host__ __device__ inline C make(R re, R im) {                                  \
        return {re, im};                                                             \
    }                                                                                \
    __host__ __device__ inline R cuCreal##suffix(C z) {                              \
        return z.x;                                                                  \
    }                                                                                \
    __host__ __device__ inline R cuCimag##suffix(C z) {                              \
        return z.y;                                                                  \
    }                                                                                \
    __host__ __device__ inline C cuConj##suffix(C z) {                               \
        return {z.x, -z.y};                                                          \
    }                                                                                \
    __host__ __device__ inline C cuCadd##suffix(C a, C b) {                          \
        return {a.x + b.x, a.y + b.y};                                               \
    }                                                                                \
    __host__ __device__ inline C cuCsub##suffix(C a, C b) {                          \
        return {a.x - b.x, a.y - b.y};                                               \
    }                                                                                \
    __host__ __device__ inline C cuCmul##suffix(C a, C b) {                          \
        return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                       \
    }                                                                                \
    __host__ __device__ inline C cuCfma##suffix(C a, C b, C c) {                     \
        return cuCadd##suffix(cuCmul##suffix(a, b), c);                              \
    }                                                                                \
    __host__ __device__ inline C cuCdiv##suffix(C a, C b) {                          \
        R scale = std::fabs(b.x) + std::fabs(b.y);                                   \
        C s = {a.x / scale, a.y / scale}, t = {b.x / scale, b.y / scale};            \
        R square = t.x * t.x + t.y * t.y;                                            \
        return {(s.x * t.x + s.y * t.y) / square, (s.y * t.x - s.x * t.y) / square}; \
    }                                                                                \
    __host__ __device__ inline R cuCabs##suffix(C z) {                               \
        return std::hypot(z.x, z.y);                                                 \
    }
CUDA_CPU_COMPLEX(cuFloatComplex, float, f, make_cuFloatComplex)
CUDA_CPU_COMPLEX(cuDoubleComplex, double, , make_cuDoubleComplex)
#undef CUDA_CPU_COMPLEX
__host__ __device__ inline cuComplex make_cuComplex(float re, float im) {
    return {re, im};
}
__host__ __device__ inline cuDoubleComplex cuComplexFloatToDouble(cuComplex z) {
    return {z.x, z.y};
}
__host__ __device__ inline cuComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
    return {float(z.x), float(z.y)};
}
#include "macros_back.inc"
