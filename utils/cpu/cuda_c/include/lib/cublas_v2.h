// cuBLAS (version 2 interface) on the CPU: real level 1, gemv, ger, gemm, geam, in single, double
// and half precision.
//
// Matrices are column-major: element (i, j) of a matrix with leading dimension ld lies at i + j *
// ld. Functions that are missing here (complex, triangular, banded ...) are not declared and so do
// not compile. The parts are in cublas/: handle.h, vectors.h, matrices.h, product.h, gemm.h.
#pragma once
#define CUBLAS_API_H_  // asked for by helper_cuda.h
#include "cublas/gemm.h"
#include "cublas/matrices.h"
#include "cublas/vectors.h"
#include "macros_aside.inc"

// ---- the interface: S is float, D double, H half
#define CUDA_CPU_BLAS(L, l, T)                                                                    \
    inline cublasStatus_t cublas##L##axpy(cublasHandle_t h, int n, const T* alpha, const T* x,    \
                                          int incx, T* y, int incy) {                             \
        return ::cuda_cpu::axpy(h, n, alpha, x, incx, y, incy);                                   \
    }                                                                                             \
    inline cublasStatus_t cublas##L##scal(cublasHandle_t h, int n, const T* alpha, T* x,          \
                                          int incx) {                                             \
        return ::cuda_cpu::scal(h, n, alpha, x, incx);                                            \
    }                                                                                             \
    inline cublasStatus_t cublas##L##copy(cublasHandle_t h, int n, const T* x, int incx, T* y,    \
                                          int incy) {                                             \
        return ::cuda_cpu::copy_vector(h, n, x, incx, y, incy);                                   \
    }                                                                                             \
    inline cublasStatus_t cublas##L##swap(cublasHandle_t h, int n, T* x, int incx, T* y,          \
                                          int incy) {                                             \
        return ::cuda_cpu::swap_vectors(h, n, x, incx, y, incy);                                  \
    }                                                                                             \
    inline cublasStatus_t cublas##L##dot(cublasHandle_t h, int n, const T* x, int incx,           \
                                         const T* y, int incy, T* r) {                            \
        return ::cuda_cpu::dot(h, n, x, incx, y, incy, r);                                        \
    }                                                                                             \
    inline cublasStatus_t cublas##L##nrm2(cublasHandle_t h, int n, const T* x, int incx, T* r) {  \
        return ::cuda_cpu::nrm2(h, n, x, incx, r);                                                \
    }                                                                                             \
    inline cublasStatus_t cublas##L##asum(cublasHandle_t h, int n, const T* x, int incx, T* r) {  \
        return ::cuda_cpu::asum(h, n, x, incx, r);                                                \
    }                                                                                             \
    inline cublasStatus_t cublasI##l##amax(cublasHandle_t h, int n, const T* x, int incx,         \
                                           int* r) {                                              \
        return ::cuda_cpu::extreme(h, n, x, incx, r, true);                                       \
    }                                                                                             \
    inline cublasStatus_t cublasI##l##amin(cublasHandle_t h, int n, const T* x, int incx,         \
                                           int* r) {                                              \
        return ::cuda_cpu::extreme(h, n, x, incx, r, false);                                      \
    }                                                                                             \
    inline cublasStatus_t cublas##L##gemv(cublasHandle_t h, cublasOperation_t op, int m, int n,   \
                                          const T* alpha, const T* a, int lda, const T* x,        \
                                          int incx, const T* beta, T* y, int incy) {              \
        return ::cuda_cpu::gemv(h, "cublas" #L "gemv", op, m, n, alpha, a, lda, x, incx, beta, y, \
                                incy);                                                            \
    }                                                                                             \
    inline cublasStatus_t cublas##L##ger(cublasHandle_t h, int m, int n, const T* alpha,          \
                                         const T* x, int incx, const T* y, int incy, T* a,        \
                                         int lda) {                                               \
        return ::cuda_cpu::ger(h, "cublas" #L "ger", m, n, alpha, x, incx, y, incy, a, lda);      \
    }                                                                                             \
    inline cublasStatus_t cublas##L##geam(                                                        \
        cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,           \
        const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c, int ldc) { \
        return ::cuda_cpu::geam(h, "cublas" #L "geam", op_a, op_b, m, n, alpha, a, lda, beta, b,  \
                                ldb, c, ldc);                                                     \
    }
CUDA_CPU_BLAS(S, s, float)
CUDA_CPU_BLAS(D, d, double)
#undef CUDA_CPU_BLAS

#define CUDA_CPU_GEMM(L, T)                                                                       \
    inline cublasStatus_t cublas##L##gemm(                                                        \
        cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,    \
        const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) { \
        ::cuda_cpu::GemmCall call{h, "cublas" #L "gemm", op_a, op_b, m, n, k, lda, ldb, ldc};     \
        call.letter = #L[0];                                                                      \
        call.inputs = ::cuda_cpu::inputs_of(h, CUBLAS_COMPUTE_32F);                               \
        return ::cuda_cpu::gemm<T, T, T>(call, alpha, a, b, beta, c);                             \
    }                                                                                             \
    inline cublasStatus_t cublas##L##gemmStridedBatched(                                          \
        cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,    \
        const T* alpha, const T* a, int lda, long long stride_a, const T* b, int ldb,             \
        long long stride_b, const T* beta, T* c, int ldc, long long stride_c, int batches) {      \
        ::cuda_cpu::GemmCall call{h,        "cublas" #L "gemmStridedBatched",                     \
                                  op_a,     op_b,                                                 \
                                  m,        n,                                                    \
                                  k,        lda,                                                  \
                                  ldb,      ldc,                                                  \
                                  stride_a, stride_b,                                             \
                                  stride_c, batches};                                             \
        call.inputs = ::cuda_cpu::inputs_of(h, CUBLAS_COMPUTE_32F);                               \
        return ::cuda_cpu::gemm<T, T, T>(call, alpha, a, b, beta, c);                             \
    }                                                                                             \
    inline cublasStatus_t cublas##L##gemmBatched(                                                 \
        cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,    \
        const T* alpha, const T* const a[], int lda, const T* const b[], int ldb, const T* beta,  \
        T* const c[], int ldc, int batches) {                                                     \
        ::cuda_cpu::GemmCall call{                                                                \
            h, "cublas" #L "gemmBatched", op_a, op_b, m, n, k, lda, ldb, ldc, 0, 0, 0, batches};  \
        call.inputs = ::cuda_cpu::inputs_of(h, CUBLAS_COMPUTE_32F);                               \
        return ::cuda_cpu::gemm<T, T, T>(call, alpha, nullptr, nullptr, beta, nullptr, a, b, c);  \
    }
CUDA_CPU_GEMM(S, float)
CUDA_CPU_GEMM(D, double)
CUDA_CPU_GEMM(H, __half)
#undef CUDA_CPU_GEMM

inline cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b,
                                   int m, int n, int k, const void* alpha, const void* a,
                                   cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                                   int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                                   cublasComputeType_t compute, cublasGemmAlgo_t) {
    ::cuda_cpu::GemmCall call{h, "cublasGemmEx", op_a, op_b, m, n, k, lda, ldb, ldc};
    return ::cuda_cpu::GemmEx{call, alpha, a, b, beta, c}.run(type_a, type_b, type_c, compute);
}
// Until CUDA 11 the kind of computing was named by the type of the sums.
inline cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b,
                                   int m, int n, int k, const void* alpha, const void* a,
                                   cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                                   int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                                   cudaDataType sums, cublasGemmAlgo_t algorithm) {
    return cublasGemmEx(h, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                        type_c, ldc, ::cuda_cpu::compute_type_of(sums), algorithm);
}
inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
    const void* alpha, const void* a, cudaDataType type_a, int lda, long long stride_a,
    const void* b, cudaDataType type_b, int ldb, long long stride_b, const void* beta, void* c,
    cudaDataType type_c, int ldc, long long stride_c, int batches, cublasComputeType_t compute,
    cublasGemmAlgo_t) {
    ::cuda_cpu::GemmCall call{h, "cublasGemmStridedBatchedEx", op_a, op_b, m, n, k, lda, ldb, ldc};
    call.stride_a = stride_a;
    call.stride_b = stride_b;
    call.stride_c = stride_c;
    call.batches = batches;
    return ::cuda_cpu::GemmEx{call, alpha, a, b, beta, c}.run(type_a, type_b, type_c, compute);
}

// What the macros of NVIDIA's header make of the short names.
#define CUDA_CPU_V2(name) inline constexpr auto& name##_v2 = name;
#define CUDA_CPU_BLAS_V2(L, l)    \
    CUDA_CPU_V2(cublas##L##axpy)  \
    CUDA_CPU_V2(cublas##L##scal)  \
    CUDA_CPU_V2(cublas##L##copy)  \
    CUDA_CPU_V2(cublas##L##swap)  \
    CUDA_CPU_V2(cublas##L##dot)   \
    CUDA_CPU_V2(cublas##L##nrm2)  \
    CUDA_CPU_V2(cublas##L##asum)  \
    CUDA_CPU_V2(cublasI##l##amax) \
    CUDA_CPU_V2(cublasI##l##amin) \
    CUDA_CPU_V2(cublas##L##gemv)  \
    CUDA_CPU_V2(cublas##L##ger)   \
    CUDA_CPU_V2(cublas##L##gemm)
CUDA_CPU_BLAS_V2(S, s)
CUDA_CPU_BLAS_V2(D, d)
CUDA_CPU_V2(cublasCreate)
CUDA_CPU_V2(cublasDestroy)
CUDA_CPU_V2(cublasGetVersion)
CUDA_CPU_V2(cublasSetWorkspace)
CUDA_CPU_V2(cublasSetStream)
CUDA_CPU_V2(cublasGetStream)
CUDA_CPU_V2(cublasSetPointerMode)
CUDA_CPU_V2(cublasGetPointerMode)
#undef CUDA_CPU_BLAS_V2
#undef CUDA_CPU_V2
#include "macros_back.inc"
