// cuSPARSE on the CPU: statuses, handles and descriptors of its generic interface.
#pragma once
#include <cstdint>
#include <cstdlib>
#include "../cuda_bf16.h"
#include "../cuda_fp16.h"
#include "../device_task.h"
#include "../library_types.h"
#include "../macros_aside.inc"

typedef enum {
    CUSPARSE_STATUS_SUCCESS = 0,
    CUSPARSE_STATUS_NOT_INITIALIZED = 1,
    CUSPARSE_STATUS_ALLOC_FAILED = 2,
    CUSPARSE_STATUS_INVALID_VALUE = 3,
    CUSPARSE_STATUS_ARCH_MISMATCH = 4,
    CUSPARSE_STATUS_MAPPING_ERROR = 5,
    CUSPARSE_STATUS_EXECUTION_FAILED = 6,
    CUSPARSE_STATUS_INTERNAL_ERROR = 7,
    CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
    CUSPARSE_STATUS_ZERO_PIVOT = 9,
    CUSPARSE_STATUS_NOT_SUPPORTED = 10
} cusparseStatus_t;
typedef enum {
    CUSPARSE_OPERATION_NON_TRANSPOSE = 0,
    CUSPARSE_OPERATION_TRANSPOSE = 1
} cusparseOperation_t;
typedef enum { CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 } cusparseIndexType_t;
typedef enum { CUSPARSE_INDEX_BASE_ZERO = 0, CUSPARSE_INDEX_BASE_ONE = 1 } cusparseIndexBase_t;
typedef enum { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 } cusparseOrder_t;
typedef enum {
    CUSPARSE_POINTER_MODE_HOST = 0,
    CUSPARSE_POINTER_MODE_DEVICE = 1
} cusparsePointerMode_t;
typedef enum {
    CUSPARSE_SPMV_ALG_DEFAULT = 0,
    CUSPARSE_SPMV_COO_ALG1 = 1,
    CUSPARSE_SPMV_CSR_ALG1 = 2,
    CUSPARSE_SPMV_CSR_ALG2 = 3,
    CUSPARSE_SPMV_COO_ALG2 = 4
} cusparseSpMVAlg_t;
typedef enum {
    CUSPARSE_SPMM_ALG_DEFAULT = 0,
    CUSPARSE_SPMM_CSR_ALG1 = 4,
    CUSPARSE_SPMM_CSR_ALG2 = 6,
    CUSPARSE_SPMM_CSR_ALG3 = 12
} cusparseSpMMAlg_t;

struct cusparseContext {
    cudaStream_t stream = nullptr;
    cusparsePointerMode_t pointer_mode = CUSPARSE_POINTER_MODE_HOST;
};
struct cusparseSpMatDescr {
    bool csr;
    int64_t rows, cols, count;
    void *offsets, *columns, *values;  // of COO: the rows' indices in place of the offsets
    bool wide_offsets, wide_columns;
    int base;
    cudaDataType type;
};
struct cusparseDnVecDescr {
    int64_t size;
    void* values;
    cudaDataType type;
};
struct cusparseDnMatDescr {
    int64_t rows, cols, ld;
    void* values;
    cudaDataType type;
    cusparseOrder_t order;
};
typedef cusparseContext* cusparseHandle_t;
typedef cusparseSpMatDescr* cusparseSpMatDescr_t;
typedef cusparseDnVecDescr* cusparseDnVecDescr_t;
typedef cusparseDnMatDescr* cusparseDnMatDescr_t;
typedef const cusparseSpMatDescr* cusparseConstSpMatDescr_t;
typedef const cusparseDnVecDescr* cusparseConstDnVecDescr_t;
typedef const cusparseDnMatDescr* cusparseConstDnMatDescr_t;

namespace cuda_cpu {
inline cusparseStatus_t sparse_invalid(const char* call, const char* what) {
    fprintf(stderr, "%s: CUSPARSE_STATUS_INVALID_VALUE: %s\n", call, what);
    return CUSPARSE_STATUS_INVALID_VALUE;
}
struct SparseStatusText {
    cusparseStatus_t status;
    const char *name, *text;
};
inline SparseStatusText sparse_status_text(cusparseStatus_t s) {
    static const SparseStatusText all[] = {
        {CUSPARSE_STATUS_SUCCESS, "CUSPARSE_STATUS_SUCCESS", "success"},
        {CUSPARSE_STATUS_NOT_INITIALIZED, "CUSPARSE_STATUS_NOT_INITIALIZED",
         "initialization error"},
        {CUSPARSE_STATUS_ALLOC_FAILED, "CUSPARSE_STATUS_ALLOC_FAILED", "out of memory"},
        {CUSPARSE_STATUS_INVALID_VALUE, "CUSPARSE_STATUS_INVALID_VALUE", "invalid value"},
        {CUSPARSE_STATUS_EXECUTION_FAILED, "CUSPARSE_STATUS_EXECUTION_FAILED", "execution failed"},
        {CUSPARSE_STATUS_INTERNAL_ERROR, "CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"},
        {CUSPARSE_STATUS_NOT_SUPPORTED, "CUSPARSE_STATUS_NOT_SUPPORTED",
         "operation not supported"}};
    for (const auto& entry : all)
        if (entry.status == s)
            return entry;
    return {s, "unrecognized status", "unrecognized status"};
}
inline int64_t index_at(const void* indices, bool wide, int64_t i) {
    return wide ? ((const int64_t*)indices)[i] : ((const int*)indices)[i];
}
}  // namespace cuda_cpu

inline const char* cusparseGetErrorName(cusparseStatus_t s) {
    return ::cuda_cpu::sparse_status_text(s).name;
}
inline const char* cusparseGetErrorString(cusparseStatus_t s) {
    return ::cuda_cpu::sparse_status_text(s).text;
}
inline cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
    *handle = new cusparseContext;
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
    if (!handle)
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    delete handle;
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseGetVersion(cusparseHandle_t, int* version) {
    *version = 12600;
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
    if (!handle)
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseSetPointerMode(cusparseHandle_t handle,
                                               cusparsePointerMode_t mode) {
    if (!handle)
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    handle->pointer_mode = mode;
    return CUSPARSE_STATUS_SUCCESS;
}

inline cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t* desc, int64_t rows, int64_t cols,
                                          int64_t count, void* offsets, void* columns, void* values,
                                          cusparseIndexType_t offset_type,
                                          cusparseIndexType_t column_type, cusparseIndexBase_t base,
                                          cudaDataType type) {
    const char* call = "cusparseCreateCsr";
    if (rows < 0 || cols < 0 || count < 0)
        return ::cuda_cpu::sparse_invalid(call, "a size is negative");
    if (!desc || !offsets || (count && (!columns || !values)))
        return ::cuda_cpu::sparse_invalid(call, "a pointer is null");
    *desc = new cusparseSpMatDescr{true,
                                   rows,
                                   cols,
                                   count,
                                   offsets,
                                   columns,
                                   values,
                                   offset_type == CUSPARSE_INDEX_64I,
                                   column_type == CUSPARSE_INDEX_64I,
                                   int(base),
                                   type};
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t* desc, int64_t rows, int64_t cols,
                                          int64_t count, void* row_indices, void* columns,
                                          void* values, cusparseIndexType_t index_type,
                                          cusparseIndexBase_t base, cudaDataType type) {
    const char* call = "cusparseCreateCoo";
    if (rows < 0 || cols < 0 || count < 0)
        return ::cuda_cpu::sparse_invalid(call, "a size is negative");
    if (!desc || (count && (!row_indices || !columns || !values)))
        return ::cuda_cpu::sparse_invalid(call, "a pointer is null");
    bool wide = index_type == CUSPARSE_INDEX_64I;
    *desc = new cusparseSpMatDescr{false,  rows, cols, count,     row_indices, columns,
                                   values, wide, wide, int(base), type};
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t desc) {
    delete desc;
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* desc, int64_t size, void* values,
                                            cudaDataType type) {
    if (!desc || size < 0 || (size && !values))
        return ::cuda_cpu::sparse_invalid("cusparseCreateDnVec", "a pointer is null or size < 0");
    *desc = new cusparseDnVecDescr{size, values, type};
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t desc) {
    delete desc;
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t desc, void* values) {
    desc->values = values;
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* desc, int64_t rows, int64_t cols,
                                            int64_t ld, void* values, cudaDataType type,
                                            cusparseOrder_t order) {
    const char* call = "cusparseCreateDnMat";
    if (!desc || rows < 0 || cols < 0 || !values)
        return ::cuda_cpu::sparse_invalid(call, "a pointer is null or a size negative");
    if (ld < (order == CUSPARSE_ORDER_COL ? rows : cols))
        return ::cuda_cpu::sparse_invalid(call, "the leading dimension is less than a line");
    *desc = new cusparseDnMatDescr{rows, cols, ld, values, type, order};
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t desc) {
    delete desc;
    return CUSPARSE_STATUS_SUCCESS;
}
#include "../macros_back.inc"
