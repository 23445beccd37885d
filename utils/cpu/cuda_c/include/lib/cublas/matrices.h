// cuBLAS's levels 2 and 3 on the CPU: gemv, ger, geam; the matrix product is in product.h.
#pragma once
#include "handle.h"
#include "../macros_aside.inc"

namespace cuda_cpu {
template <class T>
inline cublasStatus_t gemv(cublasHandle_t h, const char* name, cublasOperation_t op, int m, int n,
                           const T* alpha, const T* a, int lda, const T* x, int incx, const T* beta,
                           T* y, int incy) {
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0) {  // cuBLAS 13 takes it for an empty matrix
        fprintf(stderr, "%s: a size is negative, so nothing is computed\n", name);
        return CUBLAS_STATUS_SUCCESS;
    }
    if (lda < (m > 1 ? m : 1))
        return invalid(name, "lda is less than the number of rows");
    if (incx == 0 || incy == 0)
        return invalid(name, "a step between elements is 0");
    Scalar<T> s(h, alpha), t(h, beta);
    const int rows = op == CUBLAS_OP_N ? m : n, cols = op == CUBLAS_OP_N ? n : m, each = 64;
    return blas_task(h, (rows + each - 1) / each, [=](long block) {
        T scale = s.get(), keep = t.get();
        int first = int(block) * each, count = rows - first < each ? rows - first : each;
        double sum[each] = {};
        for (long j = 0; j < cols; j++) {
            double xj = x[at(j, cols, incx)];
            for (long i = 0; i < count; i++)
                sum[i] += xj * (op == CUBLAS_OP_N ? a[first + i + j * lda]
                                                  : a[j + (first + i) * long(lda)]);
        }
        for (int i = 0; i < count; i++) {
            T& out = y[at(first + i, rows, incy)];
            out = scale * T(sum[i]) + (keep == T(0) ? T(0) : keep * out);
        }
    });
}
template <class T>
inline cublasStatus_t ger(cublasHandle_t h, const char* name, int m, int n, const T* alpha,
                          const T* x, int incx, const T* y, int incy, T* a, int lda) {
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || lda < (m > 1 ? m : 1))
        return invalid(name, "a size is negative or lda less than the rows");
    Scalar<T> s(h, alpha);
    return blas_task(h, n, [=](long j) {
        T factor = s.get() * y[at(j, n, incy)];
        for (long i = 0; i < m; i++)
            a[i + j * lda] += x[at(i, m, incx)] * factor;
    });
}

template <class T>
inline cublasStatus_t geam(cublasHandle_t h, const char* name, cublasOperation_t op_a,
                           cublasOperation_t op_b, int m, int n, const T* alpha, const T* a,
                           int lda, const T* beta, const T* b, int ldb, T* c, int ldc) {
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || ldc < (m > 1 ? m : 1))
        return invalid(name, "a size is negative or ldc less than the rows");
    Scalar<T> s(h, alpha), t(h, beta);
    return blas_task(h, n, [=](long j) {
        T sa = s.get(), sb = t.get();
        for (long i = 0; i < m; i++) {
            T x = sa == T(0) ? T(0) : sa * (op_a == CUBLAS_OP_N ? a[i + j * lda] : a[j + i * lda]);
            T y = sb == T(0) ? T(0) : sb * (op_b == CUBLAS_OP_N ? b[i + j * ldb] : b[j + i * ldb]);
            c[i + j * ldc] = x + y;
        }
    });
}
}  // namespace cuda_cpu
#include "../macros_back.inc"
