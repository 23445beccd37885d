// The two kernels. A thread takes every so-manieth element, so that any grid will do.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "formula.h"

// PyTorch's build switches the implicit conversions of 16-bit numbers off: these are explicit.
__device__ inline float real(__half x) {
    return __half2float(x);
}
__device__ inline float real(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
__device__ inline float real(float x) {
    return x;
}
__device__ inline double real(double x) {
    return x;
}

template <typename Real>
__device__ inline void store(__half* to, Real x) {
    *to = __float2half(x);
}
template <typename Real>
__device__ inline void store(__nv_bfloat16* to, Real x) {
    *to = __float2bfloat16(x);
}
template <typename Real>
__device__ inline void store(Real* to, Real x) {
    *to = x;
}

// Calls body(i) for each element that is this thread's.
template <typename Body>
__device__ inline void for_each_element(long long n, Body body) {
    const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += threads)
        body(i);
}

template <typename Number, typename Real = typename Computed<Number>::type>
__device__ inline void fill_values(Number* y, const Number* x, Real a, Real b, Real c,
                                   long long n) {
    for_each_element(n, [=](long long i) { store(y + i, value_of(real(x[i]), a, b, c)); });
}

template <typename Number, typename Real = typename Computed<Number>::type>
__device__ inline void fill_slopes(Number* dx, const Number* dy, const Number* x, Real a, Real b,
                                   long long n) {
    for_each_element(n,
                     [=](long long i) { store(dx + i, real(dy[i]) * slope_of(real(x[i]), a, b)); });
}

template <typename Number, typename Real = typename Computed<Number>::type>
__global__ void polynomial(Number* y, const Number* x, Real a, Real b, Real c, long long n) {
    fill_values(y, x, a, b, c, n);
}

template <typename Number, typename Real = typename Computed<Number>::type>
__global__ void polynomial_backward(Number* dx, const Number* dy, const Number* x, Real a, Real b,
                                    long long n) {
    fill_slopes(dx, dy, x, a, b, n);
}
