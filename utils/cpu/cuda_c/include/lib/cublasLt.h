// cuBLASLt on the CPU: matmul with descriptors, layouts (column- or row-major, batched),
// preference, heuristics, workspace, and the epilogues bias, ReLU and GELU.
//
// The heuristics know two algorithms: the first needs a workspace (and computes without it), the
// second none. 8-bit floats, auxiliary outputs and gradients are not offered: an attribute or an
// epilogue that is missing has no name here, and so does not compile.
#pragma once
#include "cublas/lt_matmul.h"
#include "macros_aside.inc"

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    *handle = new cublasLtContext;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
inline size_t cublasLtGetVersion() {
    return 130000;
}
inline const char* cublasLtGetStatusName(cublasStatus_t s) {
    return ::cuda_cpu::blas_status_text(s).name;
}
inline const char* cublasLtGetStatusString(cublasStatus_t s) {
    return ::cuda_cpu::blas_status_text(s).text;
}

inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc,
                                               cublasComputeType_t compute, cudaDataType scale) {
    *desc = new cublasLtMatmulDescOpaque_t{compute, scale};
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    delete desc;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                     cublasLtMatmulDescAttributes_t name,
                                                     const void* value, size_t bytes) {
    return ::cuda_cpu::set_attribute("cublasLtMatmulDescSetAttribute", desc, name, value, bytes);
}
inline cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                                                     cublasLtMatmulDescAttributes_t name,
                                                     void* value, size_t bytes, size_t* written) {
    return ::cuda_cpu::get_attribute("cublasLtMatmulDescGetAttribute", desc, name, value, bytes,
                                     written);
}

inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                                 uint64_t rows, uint64_t cols, int64_t ld) {
    *layout = new cublasLtMatrixLayoutOpaque_t{uint32_t(type), rows, cols, ld};
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                       cublasLtMatrixLayoutAttribute_t name,
                                                       const void* value, size_t bytes) {
    return ::cuda_cpu::set_attribute("cublasLtMatrixLayoutSetAttribute", layout, name, value,
                                     bytes);
}
inline cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                       cublasLtMatrixLayoutAttribute_t name,
                                                       void* value, size_t bytes, size_t* written) {
    return ::cuda_cpu::get_attribute("cublasLtMatrixLayoutGetAttribute", layout, name, value, bytes,
                                     written);
}

inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = new cublasLtMatmulPreferenceOpaque_t;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
    const void* value, size_t bytes) {
    return ::cuda_cpu::set_attribute("cublasLtMatmulPreferenceSetAttribute", preference, name,
                                     value, bytes);
}

inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int requested, cublasLtMatmulHeuristicResult_t results[],
    int* returned) {
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    ::cuda_cpu::LtProblem problem{"cublasLtMatmulAlgoGetHeuristic", desc, a, b, c, d};
    if (!preference || !results || !returned || requested < 1)
        return problem.wrong("a pointer is null or no algorithm is requested");
    *returned = 0;
    if (cublasStatus_t wrong = problem.check())
        return wrong;
    size_t workspace = problem.workspace();
    for (size_t needed : {workspace, size_t(0)}) {
        if (needed > preference->workspace || *returned == requested)
            continue;
        cublasLtMatmulHeuristicResult_t found = {};
        found.algo.data[0] = needed;
        found.workspaceSize = needed;
        found.wavesCount = 1;
        results[(*returned)++] = found;
    }
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                     const void* alpha, const void* a,
                                     cublasLtMatrixLayout_t layout_a, const void* b,
                                     cublasLtMatrixLayout_t layout_b, const void* beta,
                                     const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                                     cublasLtMatrixLayout_t layout_d,
                                     const cublasLtMatmulAlgo_t* algo, void* workspace,
                                     size_t workspace_bytes, cudaStream_t stream) {
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    ::cuda_cpu::LtProblem problem{"cublasLtMatmul", desc, layout_a, layout_b, layout_c, layout_d};
    if (cublasStatus_t wrong = problem.check())
        return wrong;
    if (!alpha || !a || !b || !beta || !c || !d)
        return problem.wrong("a matrix or a scalar is a null pointer");
    if ((desc->epilogue & CUBLASLT_EPILOGUE_BIAS) && !desc->bias)
        return problem.wrong(
            "the epilogue wants a bias, and CUBLASLT_MATMUL_DESC_BIAS_POINTER "
            "was not set");
    if (!(desc->epilogue & CUBLASLT_EPILOGUE_BIAS) && desc->bias)
        return problem.wrong(
            "CUBLASLT_MATMUL_DESC_BIAS_POINTER is set, and the epilogue takes no bias");
    if (algo && algo->data[0] > (workspace ? workspace_bytes : 0))
        return problem.wrong("the workspace is smaller than the algorithm's workspaceSize");
    if (size_t(workspace) % 16)
        return problem.wrong("the workspace's address is no multiple of 16");
    return ::cuda_cpu::LtRun{problem, alpha, a, b, beta, c, d, stream}.run_types();
}
#include "macros_back.inc"
