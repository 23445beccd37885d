// cuBLAS on the CPU: statuses, handles, scalars, and copies of vectors and matrices.
#pragma once
#include <algorithm>
#include <vector>
#include "../cuComplex.h"
#include "../cuda_bf16.h"
#include "../cuda_fp16.h"
#include "../device_task.h"
#include "../library_types.h"
#include "../macros_aside.inc"

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
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
// Which of its kernels cuBLAS shall take: the result is the same, and newer GPUs do not listen.
typedef enum {
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_ALGO0 = 0,
    CUBLAS_GEMM_ALGO1,
    CUBLAS_GEMM_ALGO2,
    CUBLAS_GEMM_ALGO3,
    CUBLAS_GEMM_ALGO4,
    CUBLAS_GEMM_ALGO5,
    CUBLAS_GEMM_ALGO6,
    CUBLAS_GEMM_ALGO7,
    CUBLAS_GEMM_ALGO8,
    CUBLAS_GEMM_ALGO9,
    CUBLAS_GEMM_ALGO10,
    CUBLAS_GEMM_ALGO11,
    CUBLAS_GEMM_ALGO12,
    CUBLAS_GEMM_ALGO13,
    CUBLAS_GEMM_ALGO14,
    CUBLAS_GEMM_ALGO15,
    CUBLAS_GEMM_ALGO16,
    CUBLAS_GEMM_ALGO17,
    CUBLAS_GEMM_ALGO18,
    CUBLAS_GEMM_ALGO19,
    CUBLAS_GEMM_ALGO20,
    CUBLAS_GEMM_ALGO21,
    CUBLAS_GEMM_ALGO22,
    CUBLAS_GEMM_ALGO23,
    CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
    CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
    CUBLAS_GEMM_ALGO1_TENSOR_OP,
    CUBLAS_GEMM_ALGO2_TENSOR_OP,
    CUBLAS_GEMM_ALGO3_TENSOR_OP,
    CUBLAS_GEMM_ALGO4_TENSOR_OP,
    CUBLAS_GEMM_ALGO5_TENSOR_OP,
    CUBLAS_GEMM_ALGO6_TENSOR_OP,
    CUBLAS_GEMM_ALGO7_TENSOR_OP,
    CUBLAS_GEMM_ALGO8_TENSOR_OP,
    CUBLAS_GEMM_ALGO9_TENSOR_OP,
    CUBLAS_GEMM_ALGO10_TENSOR_OP,
    CUBLAS_GEMM_ALGO11_TENSOR_OP,
    CUBLAS_GEMM_ALGO12_TENSOR_OP,
    CUBLAS_GEMM_ALGO13_TENSOR_OP,
    CUBLAS_GEMM_ALGO14_TENSOR_OP,
    CUBLAS_GEMM_ALGO15_TENSOR_OP
} cublasGemmAlgo_t;

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
// Memory of the caller's in place of the handle's own. Nothing here needs it: its address alone is
// checked.
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t) {
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return size_t(workspace) % 256 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}
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
    Scalar(bool on_device, const T* p)
        : address(on_device ? p : nullptr), value(address ? T(0.0f) : *p) {}
    Scalar(cublasHandle_t h, const T* p)
        : Scalar(h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE, p) {}
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
}  // namespace cuda_cpu
#include "../macros_back.inc"
