// cuBLAS (version 2 interface) on the CPU: real level 1, gemv, ger, gemm, geam, in single, double
// and half precision.
//
// Matrices are column-major: element (i, j) of a matrix with leading dimension ld lies at i + j *
// ld. Half and bfloat16 products are summed in float. Plain tiled loops over the CPU's cores:
// right, and far from a tuned library's speed. Functions that are missing here (complex,
// triangular, banded, cublasLt ...) are not declared and so do not compile.
#pragma once
#include <cmath>
#include <vector>
#include "cuComplex.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "device_task.h"
#include "library_types.h"
#include "macros_aside.inc"

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;

struct cublasContext {
    cudaStream_t stream = nullptr;
    cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
    cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
    double* result = nullptr;  // where a result waits that goes to the host
};
typedef cublasContext* cublasHandle_t;

namespace cuda_cpu {
struct BlasStatusText {
    cublasStatus_t status;
    const char *name, *text;
};
inline BlasStatusText blas_status_text(cublasStatus_t s) {
    static const BlasStatusText all[] = {
        {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
        {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
         "the library was not initialized"},
        {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED",
         "the resource allocation failed"},
        {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
         "an unsupported value or parameter was passed to the function"},
        {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
         "the function requires an architectural feature absent from the device"},
        {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
         "an access to GPU memory space failed"},
        {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
         "the function failed to launch on the GPU"},
        {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR",
         "an internal operation failed"},
        {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
         "the requested functionality is not supported"},
        {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "the license check failed"}};
    for (const auto& entry : all)
        if (entry.status == s)
            return entry;
    return {s, "unrecognized status", "unrecognized status"};
}
}  // namespace cuda_cpu
inline const char* cublasGetStatusName(cublasStatus_t s) {
    return ::cuda_cpu::blas_status_text(s).name;
}
inline const char* cublasGetStatusString(cublasStatus_t s) {
    return ::cuda_cpu::blas_status_text(s).text;
}

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
    *handle = new cublasContext;
    return cudaMallocManaged(&(*handle)->result, sizeof(double)) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_ALLOC_FAILED;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    cudaFree(handle->result);
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
#define CUDA_CPU_PROPERTY(name, type, member)                                   \
    inline cublasStatus_t cublasSet##name(cublasHandle_t handle, type value) {  \
        if (!handle)                                                            \
            return CUBLAS_STATUS_NOT_INITIALIZED;                               \
        handle->member = value;                                                 \
        return CUBLAS_STATUS_SUCCESS;                                           \
    }                                                                           \
    inline cublasStatus_t cublasGet##name(cublasHandle_t handle, type* value) { \
        if (!handle)                                                            \
            return CUBLAS_STATUS_NOT_INITIALIZED;                               \
        *value = handle->member;                                                \
        return CUBLAS_STATUS_SUCCESS;                                           \
    }
CUDA_CPU_PROPERTY(Stream, cudaStream_t, stream)
CUDA_CPU_PROPERTY(PointerMode, cublasPointerMode_t, pointer_mode)
CUDA_CPU_PROPERTY(MathMode, cublasMath_t, math)
CUDA_CPU_PROPERTY(AtomicsMode, cublasAtomicsMode_t, atomics)
#undef CUDA_CPU_PROPERTY
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
    *version = 130000;
    return CUBLAS_STATUS_SUCCESS;
}

// ---- copies of vectors and matrices between host and device
inline cublasStatus_t cublasSetMatrix(int rows, int cols, int size, const void* a, int lda, void* b,
                                      int ldb) {
    return cudaMemcpy2D(b, (size_t)ldb * size, a, (size_t)lda * size, (size_t)rows * size, cols,
                        cudaMemcpyHostToDevice) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_MAPPING_ERROR;
}
inline cublasStatus_t cublasGetMatrix(int rows, int cols, int size, const void* a, int lda, void* b,
                                      int ldb) {
    return cudaMemcpy2D(b, (size_t)ldb * size, a, (size_t)lda * size, (size_t)rows * size, cols,
                        cudaMemcpyDeviceToHost) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_MAPPING_ERROR;
}
inline cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy) {
    return cublasSetMatrix(1, n, size, x, incx, y, incy);
}
inline cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy) {
    return cublasGetMatrix(1, n, size, x, incx, y, incy);
}

namespace cuda_cpu {
// alpha and beta: on the host they are read at the call, on the device when the work runs.
template <class T>
struct Scalar {
    const T* address;
    T value;
    Scalar(cublasHandle_t h, const T* p)
        : address(h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE ? p : nullptr),
          value(address ? T(0.0f) : *p) {}
    T get() const {
        return address ? *address : value;
    }
};
inline cublasStatus_t blas_status(cudaError_t e) {
    return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
inline cublasStatus_t invalid(const char* function, const char* what) {
    fprintf(stderr, "%s: CUBLAS_STATUS_INVALID_VALUE: %s\n", function, what);
    return CUBLAS_STATUS_INVALID_VALUE;
}

// Element i of a vector of n elements; a negative step runs from the far end, as in BLAS.
inline long at(long i, int n, int step) {
    return step >= 0 ? i * step : (i - n + 1) * step;
}

template <class F>
inline cublasStatus_t blas_task(cublasHandle_t h, long blocks, F work) {
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return blas_status(device_task(h->stream, blocks, work));
}
template <class R, class F>
inline cublasStatus_t blas_result(cublasHandle_t h, R* result, F compute) {
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
        return blas_task(h, 1, [=](long) { *result = compute(); });
    R* box = reinterpret_cast<R*>(h->result);
    cublasStatus_t status = blas_task(h, 1, [=](long) { *box = compute(); });
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    status = blas_status(cudaStreamSynchronize(h->stream));
    if (status == CUBLAS_STATUS_SUCCESS)
        *result = *box;
    return status;
}

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

// One matrix product, C = alpha op(A) op(B) + beta C, or `batch` of them: element b of a batch of
// pointers or of strides.
template <class A, class C, class S>
struct Product {
    cublasOperation_t op_a, op_b;
    int m, n, k, lda, ldb, ldc;
    const A *a, *b;
    C* c;
    long stride_a, stride_b, stride_c;
    const A *const *list_a, *const *list_b;
    C* const* list_c;
    Scalar<S> alpha, beta;

    static const int tile = 64, depth = 128;
    using Sum = std::conditional_t<std::is_same_v<S, double>, double, float>;

    // Computes one tile of C: strips of op(A) are laid out anew, so that the innermost loop runs
    // over neighbours.
    void compute(int batch, int row, int col) const {
        const A* from_a = list_a ? list_a[batch] : a + batch * stride_a;
        const A* from_b = list_b ? list_b[batch] : b + batch * stride_b;
        C* to = list_c ? list_c[batch] : c + batch * stride_c;
        int rows = m - row < tile ? m - row : tile, cols = n - col < tile ? n - col : tile;
        std::vector<Sum> strip(depth * tile), sums(tile * tile);
        for (int p0 = 0; p0 < k; p0 += depth) {
            int steps = k - p0 < depth ? k - p0 : depth;
            for (int p = 0; p < steps; p++)
                for (int i = 0; i < rows; i++) {
                    long r = row + i, q = p0 + p;
                    strip[p * tile + i] =
                        Sum(op_a == CUBLAS_OP_N ? from_a[r + q * lda] : from_a[q + r * lda]);
                }
            for (int j = 0; j < cols; j++) {
                Sum* sum = &sums[j * tile];
                for (int p = 0; p < steps; p++) {
                    long s = col + j, q = p0 + p;
                    const Sum factor =
                        Sum(op_b == CUBLAS_OP_N ? from_b[q + s * ldb] : from_b[s + q * ldb]);
                    const Sum* column = &strip[p * tile];
                    for (int i = 0; i < tile; i++)
                        sum[i] += column[i] * factor;
                }
            }
        }
        const Sum scale = Sum(alpha.get()), keep = Sum(beta.get());
        for (int j = 0; j < cols; j++)
            for (int i = 0; i < rows; i++) {
                C& out = to[row + i + long(col + j) * ldc];
                out = C(scale * sums[j * tile + i] +
                        (keep == 0 ? Sum(0) : keep * Sum(out)));  // 0 times NaN is no NaN here
            }
    }
};
template <class A, class C, class S>
inline cublasStatus_t gemm(cublasHandle_t h, const char* name, cublasOperation_t op_a,
                           cublasOperation_t op_b, int m, int n, int k, const S* alpha, const A* a,
                           int lda, long stride_a, const A* b, int ldb, long stride_b,
                           const S* beta, C* c, int ldc, long stride_c, int batches = 1,
                           const A* const* list_a = nullptr, const A* const* list_b = nullptr,
                           C* const* list_c = nullptr) {
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || batches < 0)
        return invalid(name, "a size is negative");
    int rows_a = op_a == CUBLAS_OP_N ? m : k, rows_b = op_b == CUBLAS_OP_N ? k : n;
    if (lda < (rows_a > 1 ? rows_a : 1))
        return invalid(name, "lda is less than the rows that A has in memory");
    if (ldb < (rows_b > 1 ? rows_b : 1))
        return invalid(name, "ldb is less than the rows that B has in memory");
    if (ldc < (m > 1 ? m : 1))
        return invalid(name, "ldc is less than the rows of C");
    using P = Product<A, C, S>;
    P p{op_a,
        op_b,
        m,
        n,
        k,
        lda,
        ldb,
        ldc,
        a,
        b,
        c,
        stride_a,
        stride_b,
        stride_c,
        list_a,
        list_b,
        list_c,
        Scalar<S>(h, alpha),
        Scalar<S>(h, beta)};
    long across = (m + P::tile - 1) / P::tile, down = (n + P::tile - 1) / P::tile,
         tiles = across * down;
    return blas_task(h, tiles * batches, [=](long i) {
        p.compute(int(i / tiles), int(i % tiles % across) * P::tile,
                  int(i % tiles / across) * P::tile);
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

#define CUDA_CPU_GEMM(L, T)                                                                        \
    inline cublasStatus_t cublas##L##gemm(                                                         \
        cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,     \
        const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {  \
        return ::cuda_cpu::gemm<T, T, T>(h, "cublas" #L "gemm", op_a, op_b, m, n, k, alpha, a,     \
                                         lda, 0, b, ldb, 0, beta, c, ldc, 0);                      \
    }                                                                                              \
    inline cublasStatus_t cublas##L##gemmStridedBatched(                                           \
        cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,     \
        const T* alpha, const T* a, int lda, long long stride_a, const T* b, int ldb,              \
        long long stride_b, const T* beta, T* c, int ldc, long long stride_c, int batches) {       \
        return ::cuda_cpu::gemm<T, T, T>(h, "cublas" #L "gemmStridedBatched", op_a, op_b, m, n, k, \
                                         alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,  \
                                         stride_c, batches);                                       \
    }                                                                                              \
    inline cublasStatus_t cublas##L##gemmBatched(                                                  \
        cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,     \
        const T* alpha, const T* const a[], int lda, const T* const b[], int ldb, const T* beta,   \
        T* const c[], int ldc, int batches) {                                                      \
        return ::cuda_cpu::gemm<T, T, T>(h, "cublas" #L "gemmBatched", op_a, op_b, m, n, k, alpha, \
                                         nullptr, lda, 0, nullptr, ldb, 0, beta, nullptr, ldc, 0,  \
                                         batches, a, b, c);                                        \
    }
CUDA_CPU_GEMM(S, float)
CUDA_CPU_GEMM(D, double)
CUDA_CPU_GEMM(H, __half)
#undef CUDA_CPU_GEMM

namespace cuda_cpu {
struct GemmEx {
    cublasHandle_t h;
    const char* name;
    cublasOperation_t op_a, op_b;
    int m, n, k;
    const void *alpha, *a, *b, *beta;
    void* c;
    int lda, ldb, ldc;
    long stride_a, stride_b, stride_c;
    int batches;
    template <class A, class C, class S>
    cublasStatus_t run() const {
        return gemm<A, C, S>(h, name, op_a, op_b, m, n, k, (const S*)alpha, (const A*)a, lda,
                             stride_a, (const A*)b, ldb, stride_b, (const S*)beta, (C*)c, ldc,
                             stride_c, batches);
    }
    cublasStatus_t run(cudaDataType type_a, cudaDataType type_b, cudaDataType type_c,
                       cublasComputeType_t compute) const {
        bool in_half = compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
        bool in_double = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
        if (type_a != type_b)
            return refuse();
        if (in_half)
            return type_a == CUDA_R_16F && type_c == CUDA_R_16F ? run<__half, __half, __half>()
                                                                : refuse();
        if (in_double)
            return type_a == CUDA_R_64F && type_c == CUDA_R_64F ? run<double, double, double>()
                                                                : refuse();
        if (type_a == CUDA_R_32F && type_c == CUDA_R_32F)
            return run<float, float, float>();
        if (type_a == CUDA_R_16F && type_c == CUDA_R_16F)
            return run<__half, __half, float>();
        if (type_a == CUDA_R_16F && type_c == CUDA_R_32F)
            return run<__half, float, float>();
        if (type_a == CUDA_R_16BF && type_c == CUDA_R_16BF)
            return run<__nv_bfloat16, __nv_bfloat16, float>();
        if (type_a == CUDA_R_16BF && type_c == CUDA_R_32F)
            return run<__nv_bfloat16, float, float>();
        return refuse();
    }
    cublasStatus_t refuse() const {
        fprintf(stderr,
                "%s: this combination of types is not offered on the CPU: "
                "CUBLAS_STATUS_NOT_SUPPORTED\n",
                name);
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
};
}  // namespace cuda_cpu
inline cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b,
                                   int m, int n, int k, const void* alpha, const void* a,
                                   cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                                   int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                                   cublasComputeType_t compute, cublasGemmAlgo_t) {
    return ::cuda_cpu::GemmEx{
        h, "cublasGemmEx", op_a, op_b, m, n, k, alpha, a, b, beta, c, lda, ldb, ldc, 0, 0, 0, 1}
        .run(type_a, type_b, type_c, compute);
}
inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
    const void* alpha, const void* a, cudaDataType type_a, int lda, long long stride_a,
    const void* b, cudaDataType type_b, int ldb, long long stride_b, const void* beta, void* c,
    cudaDataType type_c, int ldc, long long stride_c, int batches, cublasComputeType_t compute,
    cublasGemmAlgo_t) {
    return ::cuda_cpu::GemmEx{h,        "cublasGemmStridedBatchedEx",
                              op_a,     op_b,
                              m,        n,
                              k,        alpha,
                              a,        b,
                              beta,     c,
                              lda,      ldb,
                              ldc,      stride_a,
                              stride_b, stride_c,
                              batches}
        .run(type_a, type_b, type_c, compute);
}
#include "macros_back.inc"
