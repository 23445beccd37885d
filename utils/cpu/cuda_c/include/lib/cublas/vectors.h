// cuBLAS's level 1 on the CPU: what works on vectors.
#pragma once
#include "handle.h"
#include "../macros_aside.inc"

namespace cuda_cpu {
template <class T>
inline cublasStatus_t axpy(cublasHandle_t h, int n, const T* alpha, const T* x, int incx, T* y,
                           int incy) {
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    Scalar<T> a(h, alpha);
    return blas_task(h, 1, [=](long) {
        T s = a.get();
        for (long i = 0; i < n; i++)
            y[at(i, n, incy)] += s * x[at(i, n, incx)];
    });
}
template <class T>
inline cublasStatus_t scal(cublasHandle_t h, int n, const T* alpha, T* x, int incx) {
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (incx <= 0)
        return CUBLAS_STATUS_SUCCESS;
    Scalar<T> a(h, alpha);
    return blas_task(h, 1, [=](long) {
        T s = a.get();
        for (long i = 0; i < n; i++)
            x[i * incx] *= s;
    });
}
template <class T>
inline cublasStatus_t copy_vector(cublasHandle_t h, int n, const T* x, int incx, T* y, int incy) {
    return blas_task(h, 1, [=](long) {
        for (long i = 0; i < n; i++)
            y[at(i, n, incy)] = x[at(i, n, incx)];
    });
}
template <class T>
inline cublasStatus_t swap_vectors(cublasHandle_t h, int n, T* x, int incx, T* y, int incy) {
    return blas_task(h, 1, [=](long) {
        for (long i = 0; i < n; i++)
            std::swap(x[at(i, n, incx)], y[at(i, n, incy)]);
    });
}
template <class T>
inline cublasStatus_t dot(cublasHandle_t h, int n, const T* x, int incx, const T* y, int incy,
                          T* result) {
    return blas_result(h, result, [=] {
        double sum = 0;
        for (long i = 0; i < n; i++)
            sum += double(x[at(i, n, incx)]) * y[at(i, n, incy)];
        return T(sum);
    });
}
template <class T>
inline cublasStatus_t nrm2(cublasHandle_t h, int n, const T* x, int incx, T* result) {
    return blas_result(h, result, [=] {
        double largest = 0, sum = 0;  // scaled, so that no square overflows
        for (long i = 0; i < n; i++)
            largest = std::fmax(largest, std::fabs(double(x[at(i, n, incx)])));
        if (largest == 0 || !std::isfinite(largest))
            return T(largest);
        for (long i = 0; i < n; i++)
            sum += x[at(i, n, incx)] / largest * (x[at(i, n, incx)] / largest);
        return T(largest * std::sqrt(sum));
    });
}
template <class T>
inline cublasStatus_t asum(cublasHandle_t h, int n, const T* x, int incx, T* result) {
    return blas_result(h, result, [=] {
        double sum = 0;
        for (long i = 0; i < n; i++)
            sum += std::fabs(double(x[at(i, n, incx)]));
        return T(sum);
    });
}
// The first element of largest (or smallest) magnitude, counted from 1.
template <class T>
inline cublasStatus_t extreme(cublasHandle_t h, int n, const T* x, int incx, int* result,
                              bool largest) {
    return blas_result(h, result, [=] {
        if (n < 1 || incx < 1)
            return 0;
        long best = 0;
        for (long i = 1; i < n; i++) {
            double a = std::fabs(double(x[i * incx])), b = std::fabs(double(x[best * incx]));
            if (largest ? a > b : a < b)
                best = i;
        }
        return int(best + 1);
    });
}
}  // namespace cuda_cpu
#include "../macros_back.inc"
