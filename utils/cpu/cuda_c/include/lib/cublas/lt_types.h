// cuBLASLt on the CPU: its enumerations, and the structs behind its opaque types.
#pragma once
#include <cstdint>
#include "handle.h"
#include "../macros_aside.inc"

typedef enum {
    CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,
    CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
    CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_TRANSC = 5,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
    CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10,
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
} cublasLtMatmulDescAttributes_t;
typedef enum {
    CUBLASLT_POINTER_MODE_HOST = 0,
    CUBLASLT_POINTER_MODE_DEVICE = 1
} cublasLtPointerMode_t;
typedef enum {
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    CUBLASLT_EPILOGUE_RELU = 2,
    CUBLASLT_EPILOGUE_BIAS = 4,
    CUBLASLT_EPILOGUE_RELU_BIAS = CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS,
    CUBLASLT_EPILOGUE_GELU = 32,
    CUBLASLT_EPILOGUE_GELU_BIAS = CUBLASLT_EPILOGUE_GELU | CUBLASLT_EPILOGUE_BIAS
} cublasLtEpilogue_t;
typedef enum {
    CUBLASLT_MATRIX_LAYOUT_TYPE = 0,
    CUBLASLT_MATRIX_LAYOUT_ORDER = 1,
    CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
    CUBLASLT_MATRIX_LAYOUT_COLS = 3,
    CUBLASLT_MATRIX_LAYOUT_LD = 4,
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
} cublasLtMatrixLayoutAttribute_t;
typedef enum { CUBLASLT_ORDER_COL = 0, CUBLASLT_ORDER_ROW = 1 } cublasLtOrder_t;
typedef enum {
    CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
} cublasLtMatmulPreferenceAttributes_t;

struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
    cublasComputeType_t compute;
    cudaDataType scale;
    int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
    int32_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N, op_c = CUBLAS_OP_N;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void* bias = nullptr;
    int64_t bias_stride = 0;
    int32_t bias_type = -1;  // that of D
};
struct cublasLtMatrixLayoutOpaque_t {
    uint32_t type;
    uint64_t rows, cols;
    int64_t ld;
    int32_t order = CUBLASLT_ORDER_COL, batches = 1;
    int64_t stride = 0;
};
struct cublasLtMatmulPreferenceOpaque_t {
    uint32_t search_mode = 0;
    uint64_t workspace = 0;
};
typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
typedef cublasLtContext* cublasLtHandle_t;
typedef cublasLtMatmulDescOpaque_t* cublasLtMatmulDesc_t;
typedef cublasLtMatrixLayoutOpaque_t* cublasLtMatrixLayout_t;
typedef cublasLtMatmulPreferenceOpaque_t* cublasLtMatmulPreference_t;

namespace cuda_cpu {
// The place of an attribute in its struct, and how many bytes it has there.
struct Attribute {
    void* place;
    size_t bytes;
};
template <class T>
inline Attribute attribute(T& member) {
    return {&member, sizeof member};
}
inline Attribute find_attribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name) {
    switch (name) {
        case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
            return attribute(d->compute);
        case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
            return attribute(d->scale);
        case CUBLASLT_MATMUL_DESC_POINTER_MODE:
            return attribute(d->pointer_mode);
        case CUBLASLT_MATMUL_DESC_TRANSA:
            return attribute(d->op_a);
        case CUBLASLT_MATMUL_DESC_TRANSB:
            return attribute(d->op_b);
        case CUBLASLT_MATMUL_DESC_TRANSC:
            return attribute(d->op_c);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
            return attribute(d->epilogue);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
            return attribute(d->bias);
        case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
            return attribute(d->bias_stride);
        case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
            return attribute(d->bias_type);
    }
    return {nullptr, 0};
}
inline Attribute find_attribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t name) {
    switch (name) {
        case CUBLASLT_MATRIX_LAYOUT_TYPE:
            return attribute(l->type);
        case CUBLASLT_MATRIX_LAYOUT_ORDER:
            return attribute(l->order);
        case CUBLASLT_MATRIX_LAYOUT_ROWS:
            return attribute(l->rows);
        case CUBLASLT_MATRIX_LAYOUT_COLS:
            return attribute(l->cols);
        case CUBLASLT_MATRIX_LAYOUT_LD:
            return attribute(l->ld);
        case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
            return attribute(l->batches);
        case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
            return attribute(l->stride);
    }
    return {nullptr, 0};
}
inline Attribute find_attribute(cublasLtMatmulPreference_t p,
                                cublasLtMatmulPreferenceAttributes_t name) {
    if (name == CUBLASLT_MATMUL_PREF_SEARCH_MODE)
        return attribute(p->search_mode);
    if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return attribute(p->workspace);
    return {nullptr, 0};
}

// Both check the size: an int where a 64-bit number is wanted is the usual mistake.
template <class D, class N>
inline cublasStatus_t set_attribute(const char* call, D desc, N name, const void* value,
                                    size_t bytes) {
    if (!desc || !value)
        return invalid(call, "a pointer is null");
    Attribute found = find_attribute(desc, name);
    if (!found.place)
        return invalid(call, "this attribute is not offered on the CPU");
    if (found.bytes != bytes)
        return invalid(call, "the size in bytes is not that of this attribute's type");
    memcpy(found.place, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
template <class D, class N>
inline cublasStatus_t get_attribute(const char* call, D desc, N name, void* value, size_t bytes,
                                    size_t* written) {
    if (!desc || (!value && bytes))
        return invalid(call, "a pointer is null");
    Attribute found = find_attribute(desc, name);
    if (!found.place)
        return invalid(call, "this attribute is not offered on the CPU");
    if (written)
        *written = found.bytes;
    if (!bytes)
        return CUBLAS_STATUS_SUCCESS;
    if (found.bytes != bytes)
        return invalid(call, "the size in bytes is not that of this attribute's type");
    memcpy(value, found.place, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
}  // namespace cuda_cpu
#include "../macros_back.inc"
