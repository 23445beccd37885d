// cuBLASXt on the CPU: products of matrices in host memory. Blocks and devices are noted, the
// matrices go to the device as a whole.
#pragma once
#include "cublas_v2.h"
#include "macros_aside.inc"

struct cublasXtContext {
    std::vector<int> devices;
    int block = 2048;
    cublasHandle_t blas = nullptr;
};
typedef cublasXtContext* cublasXtHandle_t;

inline cublasStatus_t cublasXtCreate(cublasXtHandle_t* handle) {
    *handle = new cublasXtContext;
    return cublasCreate(&(*handle)->blas);
}
inline cublasStatus_t cublasXtDestroy(cublasXtHandle_t handle) {
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    cublasDestroy(handle->blas);
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasXtDeviceSelect(cublasXtHandle_t handle, int count, int devices[]) {
    int present = 0;
    cudaGetDeviceCount(&present);
    for (int i = 0; i < count; i++)
        if (devices[i] < 0 || devices[i] >= present)
            return ::cuda_cpu::invalid("cublasXtDeviceSelect", "there is no such device");
    handle->devices.assign(devices, devices + count);
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasXtSetBlockDim(cublasXtHandle_t handle, int block) {
    if (block < 1)
        return ::cuda_cpu::invalid("cublasXtSetBlockDim", "the block is empty");
    handle->block = block;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasXtGetBlockDim(cublasXtHandle_t handle, int* block) {
    *block = handle->block;
    return CUBLAS_STATUS_SUCCESS;
}

namespace cuda_cpu {
// A copy of a host matrix on the device.
template <class T>
struct OnDevice {
    T* data = nullptr;
    size_t bytes;
    OnDevice(const T* host, size_t ld, size_t columns) : bytes(ld * columns * sizeof(T)) {
        cudaMalloc(&data, bytes);
        cudaMemcpy(data, host, bytes, cudaMemcpyDefault);
    }
    ~OnDevice() {
        cudaFree(data);
    }
};
template <class T>
inline cublasStatus_t xt_gemm(cublasXtHandle_t handle, GemmCall call, const T* alpha, const T* a,
                              const T* b, const T* beta, T* c) {
    if (!handle || handle->devices.empty())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    call.h = handle->blas;
    if (cublasStatus_t wrong = call.check(alpha, beta))
        return wrong;
    OnDevice<T> da(a, call.lda, call.op_a == CUBLAS_OP_N ? call.k : call.m);
    OnDevice<T> db(b, call.ldb, call.op_b == CUBLAS_OP_N ? call.n : call.k);
    OnDevice<T> dc(c, call.ldc, call.n);
    cublasStatus_t status = gemm<T, T, T>(call, alpha, da.data, db.data, beta, dc.data);
    if (cudaMemcpy(c, dc.data, dc.bytes, cudaMemcpyDefault) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return status;
}
}  // namespace cuda_cpu

#define CUDA_CPU_XT_GEMM(L, T)                                                                     \
    inline cublasStatus_t cublasXt##L##gemm(cublasXtHandle_t handle, cublasOperation_t op_a,       \
                                            cublasOperation_t op_b, size_t m, size_t n, size_t k,  \
                                            const T* alpha, const T* a, size_t lda, const T* b,    \
                                            size_t ldb, const T* beta, T* c, size_t ldc) {         \
        ::cuda_cpu::GemmCall call{                                                                 \
            nullptr, "cublasXt" #L "gemm", op_a, op_b, int(m), int(n), int(k), int(lda), int(ldb), \
            int(ldc)};                                                                             \
        return ::cuda_cpu::xt_gemm<T>(handle, call, alpha, a, b, beta, c);                         \
    }
CUDA_CPU_XT_GEMM(S, float)
CUDA_CPU_XT_GEMM(D, double)
#undef CUDA_CPU_XT_GEMM
#include "macros_back.inc"
