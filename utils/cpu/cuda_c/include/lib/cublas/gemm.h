// cuBLAS's gemm on the CPU: what is checked of its arguments, and its forms for mixed types.
#pragma once
#include "product.h"
#include "../macros_aside.inc"

namespace cuda_cpu {
// The arguments of any gemm but its matrices.
struct GemmCall {
    cublasHandle_t h;
    const char* name;
    cublasOperation_t op_a, op_b;
    int m, n, k, lda, ldb, ldc;
    long stride_a = 0, stride_b = 0, stride_c = 0;
    int batches = 1;
    InputType inputs = InputType::as_given;
    char letter = 0;  // S, D or H of a plain gemm, whose mistakes cuBLAS reports as BLAS does

    // Says what is wrong; of a plain gemm on stdout too, in the words and with the number of BLAS.
    cublasStatus_t illegal(int parameter, const char* what) const {
        if (letter)
            fprintf(stdout, " ** On entry to %cGEMM  parameter number %d had an illegal value\n",
                    letter, parameter);
        return invalid(name, what);
    }
    cublasStatus_t check_sizes() const {
        const char* negative = "a size is negative";
        if (m < 0)
            return illegal(3, negative);
        if (n < 0)
            return illegal(4, negative);
        if (k < 0)
            return illegal(5, negative);
        return batches < 0 ? invalid(name, negative) : CUBLAS_STATUS_SUCCESS;
    }
    cublasStatus_t check(const void* alpha, const void* beta) const {
        if (!h)
            return CUBLAS_STATUS_NOT_INITIALIZED;
        const char* no_op = "an operation is none of CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C";
        if (unsigned(op_a) > CUBLAS_OP_C)
            return illegal(1, no_op);
        if (unsigned(op_b) > CUBLAS_OP_C)
            return illegal(2, no_op);
        if (cublasStatus_t wrong = check_sizes())
            return wrong;
        if (!alpha || !beta)
            return invalid(name, "alpha or beta is a null pointer");
        int rows_a = op_a == CUBLAS_OP_N ? m : k, rows_b = op_b == CUBLAS_OP_N ? k : n;
        if (lda < std::max(1, rows_a))
            return illegal(8, "lda is less than the rows that A has in memory");
        if (ldb < std::max(1, rows_b))
            return illegal(10, "ldb is less than the rows that B has in memory");
        if (ldc < std::max(1, m))
            return illegal(13, "ldc is less than the rows of C");
        return CUBLAS_STATUS_SUCCESS;
    }
};

template <class A, class C, class S>
inline cublasStatus_t gemm(const GemmCall& call, const S* alpha, const A* a, const A* b,
                           const S* beta, C* c, const A* const* list_a = nullptr,
                           const A* const* list_b = nullptr, C* const* list_c = nullptr) {
    if (cublasStatus_t wrong = call.check(alpha, beta))
        return wrong;
    bool on_device = call.h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
    const C* const* old = const_cast<const C* const*>(list_c);
    Product<A, C, S> p{call.m,
                       call.n,
                       call.k,
                       operand(call.op_a, a, call.lda, call.stride_a, list_a),
                       operand(call.op_b, b, call.ldb, call.stride_b, list_b),
                       {c, 1, call.ldc, call.stride_c, old},
                       {c, 1, call.ldc, call.stride_c, list_c},
                       Scalar<S>(on_device, alpha),
                       Scalar<S>(on_device, beta),
                       call.inputs};
    return run_product(call.h->stream, p, call.batches);
}

// What a mode of the handle and a type of computation make of float inputs.
inline InputType inputs_of(cublasHandle_t h, cublasComputeType_t compute) {
    if (compute == CUBLAS_COMPUTE_32F_FAST_16F)
        return InputType::half;
    if (compute == CUBLAS_COMPUTE_32F_FAST_16BF)
        return InputType::bfloat16;
    bool by_handle = h && h->math == CUBLAS_TF32_TENSOR_OP_MATH && compute == CUBLAS_COMPUTE_32F;
    if (by_handle || compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        return InputType::tf32;
    return InputType::as_given;
}

inline cublasComputeType_t compute_type_of(cudaDataType sums) {
    switch (sums) {
        case CUDA_R_16F:
            return CUBLAS_COMPUTE_16F;
        case CUDA_R_32I:
            return CUBLAS_COMPUTE_32I;
        case CUDA_R_64F:
            return CUBLAS_COMPUTE_64F;
        default:
            return CUBLAS_COMPUTE_32F;
    }
}

// gemm whose types are values: each combination that is offered is one instance of the template.
struct GemmEx {
    GemmCall call;
    const void *alpha, *a, *b, *beta;
    void* c;

    template <class A, class C, class S>
    cublasStatus_t run() const {
        return gemm<A, C, S>(call, (const S*)alpha, (const A*)a, (const A*)b, (const S*)beta,
                             (C*)c);
    }
    cublasStatus_t run(cudaDataType type_a, cudaDataType type_b, cudaDataType type_c,
                       cublasComputeType_t compute) {
        if (type_a != type_b)
            return refuse();
        call.inputs = inputs_of(call.h, compute);
        auto types = [&](cudaDataType in, cudaDataType out) {
            return type_a == in && type_c == out;
        };
        switch (compute) {
            case CUBLAS_COMPUTE_16F:
            case CUBLAS_COMPUTE_16F_PEDANTIC:
                return types(CUDA_R_16F, CUDA_R_16F) ? run<__half, __half, __half>() : refuse();
            case CUBLAS_COMPUTE_32I:
            case CUBLAS_COMPUTE_32I_PEDANTIC:
                return types(CUDA_R_8I, CUDA_R_32I) ? run<signed char, int, int>() : refuse();
            case CUBLAS_COMPUTE_64F:
            case CUBLAS_COMPUTE_64F_PEDANTIC:
                return types(CUDA_R_64F, CUDA_R_64F) ? run<double, double, double>() : refuse();
            default:
                break;
        }
        if (types(CUDA_R_32F, CUDA_R_32F))
            return run<float, float, float>();
        if (types(CUDA_R_16F, CUDA_R_16F))
            return run<__half, __half, float>();
        if (types(CUDA_R_16F, CUDA_R_32F))
            return run<__half, float, float>();
        if (types(CUDA_R_16BF, CUDA_R_16BF))
            return run<__nv_bfloat16, __nv_bfloat16, float>();
        if (types(CUDA_R_16BF, CUDA_R_32F))
            return run<__nv_bfloat16, float, float>();
        return refuse();
    }
    cublasStatus_t refuse() const {
        fprintf(stderr,
                "%s: CUBLAS_STATUS_NOT_SUPPORTED: this combination of types is not offered\n",
                call.name);
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
};
}  // namespace cuda_cpu
#include "../macros_back.inc"
