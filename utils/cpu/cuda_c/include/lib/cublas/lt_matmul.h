// cuBLASLt's matmul on the CPU: what is checked of a problem, and the product with its epilogue.
#pragma once
#include "lt_types.h"
#include "product.h"
#include "../macros_aside.inc"

namespace cuda_cpu {
// GELU by tanh, the form that cuBLASLt computes.
inline double gelu(double x) {
    const double root_of_2_by_pi = 0.7978845608028654;
    return 0.5 * x * (1 + std::tanh(root_of_2_by_pi * (x + 0.044715 * x * x * x)));
}

// Bias of the element's row, then ReLU or GELU.
template <class C>
struct Epilogue {
    unsigned kind;
    const C* bias;
    long stride;
    template <class Sum>
    Sum operator()(Sum value, int batch, int row) const {
        if (kind & CUBLASLT_EPILOGUE_BIAS)
            value += Sum(bias[batch * stride + row]);
        if (kind & CUBLASLT_EPILOGUE_RELU)
            return value > 0 ? value : Sum(0);
        if (kind & CUBLASLT_EPILOGUE_GELU)
            return Sum(gelu(double(value)));
        return value;
    }
};

struct LtProblem {
    const char* call;
    const cublasLtMatmulDescOpaque_t* desc;
    const cublasLtMatrixLayoutOpaque_t *a, *b, *c, *d;

    cublasStatus_t wrong(const char* what) const {
        return invalid(call, what);
    }
    cublasStatus_t not_supported(const char* what) const {
        fprintf(stderr, "%s: CUBLAS_STATUS_NOT_SUPPORTED: %s\n", call, what);
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    static bool narrow(const cublasLtMatrixLayoutOpaque_t* l) {
        uint64_t line = l->order == CUBLASLT_ORDER_COL ? l->rows : l->cols;
        return l->ld < 0 || uint64_t(l->ld) < line;
    }
    static uint64_t rows(const cublasLtMatrixLayoutOpaque_t* l, int op) {
        return op == CUBLAS_OP_N ? l->rows : l->cols;
    }
    static uint64_t cols(const cublasLtMatrixLayoutOpaque_t* l, int op) {
        return op == CUBLAS_OP_N ? l->cols : l->rows;
    }

    cublasStatus_t check() const {
        if (!desc || !a || !b || !c || !d)
            return wrong("a descriptor is a null pointer");
        if (narrow(a) || narrow(b) || narrow(c) || narrow(d))
            return wrong("a layout's leading dimension is less than the lines that it has");
        if (rows(a, desc->op_a) != d->rows)
            return wrong("op(A) and D have different numbers of rows");
        if (cols(b, desc->op_b) != d->cols)
            return wrong("op(B) and D have different numbers of columns");
        if (cols(a, desc->op_a) != rows(b, desc->op_b))
            return wrong("op(A) has not as many columns as op(B) has rows");
        if (c->rows != d->rows || c->cols != d->cols || c->type != d->type)
            return wrong("C and D differ in size or type");
        if (a->batches != d->batches || b->batches != d->batches || c->batches != d->batches)
            return wrong("the layouts differ in their batch counts");
        if (desc->op_c != CUBLAS_OP_N)
            return wrong("C cannot be transposed");
        if (unsigned(desc->pointer_mode) > CUBLASLT_POINTER_MODE_DEVICE)
            return wrong("this pointer mode is not offered on the CPU");
        return check_epilogue();
    }
    cublasStatus_t check_epilogue() const {
        switch (desc->epilogue) {
            case CUBLASLT_EPILOGUE_BIAS:
            case CUBLASLT_EPILOGUE_RELU_BIAS:
            case CUBLASLT_EPILOGUE_GELU_BIAS:
                if (desc->bias_type != -1 && desc->bias_type != int(d->type))
                    return wrong("a bias of another type than D is not offered on the CPU");
                if (d->order == CUBLASLT_ORDER_ROW)
                    return not_supported("an epilogue with a bias does not take D by rows");
                return CUBLAS_STATUS_SUCCESS;
            case CUBLASLT_EPILOGUE_DEFAULT:
            case CUBLASLT_EPILOGUE_RELU:
            case CUBLASLT_EPILOGUE_GELU:
                return CUBLAS_STATUS_SUCCESS;
        }
        return wrong("this epilogue is not offered on the CPU");
    }

    // What the split of k over several blocks would need: a sum of D's size for each half.
    size_t workspace() const {
        size_t elements = size_t(d->rows) * d->cols * d->batches;
        return (2 * elements * sizeof(float) + 255) / 256 * 256;
    }
};

struct LtRun {
    LtProblem problem;
    const void *alpha, *a, *b, *beta, *c;
    void* d;
    cudaStream_t stream;

    template <class T>
    static Operand<T> place(const cublasLtMatrixLayoutOpaque_t* l, int op, T* start) {
        bool columns = (l->order == CUBLASLT_ORDER_COL) == (op == CUBLAS_OP_N);
        return operand<T>(columns ? CUBLAS_OP_N : CUBLAS_OP_T, start, l->ld, l->stride);
    }
    template <class A, class C, class S>
    cublasStatus_t run() const {
        const LtProblem& p = problem;
        const auto& desc = *p.desc;
        bool on_device = desc.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
        Epilogue<C> finish{desc.epilogue, (const C*)desc.bias, (long)desc.bias_stride};
        Product<A, C, S, Epilogue<C>> product{int(p.d->rows),
                                              int(p.d->cols),
                                              int(LtProblem::cols(p.a, desc.op_a)),
                                              place(p.a, desc.op_a, (const A*)a),
                                              place(p.b, desc.op_b, (const A*)b),
                                              place(p.c, CUBLAS_OP_N, (const C*)c),
                                              place(p.d, CUBLAS_OP_N, (C*)d),
                                              Scalar<S>(on_device, (const S*)alpha),
                                              Scalar<S>(on_device, (const S*)beta),
                                              inputs(),
                                              finish};
        return run_product(stream, product, p.d->batches);
    }
    InputType inputs() const {
        switch (problem.desc->compute) {
            case CUBLAS_COMPUTE_32F_FAST_16F:
                return InputType::half;
            case CUBLAS_COMPUTE_32F_FAST_16BF:
                return InputType::bfloat16;
            case CUBLAS_COMPUTE_32F_FAST_TF32:
                return InputType::tf32;
            default:
                return InputType::as_given;
        }
    }

    bool is(cudaDataType in, cudaDataType out, cudaDataType scale) const {
        const LtProblem& p = problem;
        return p.a->type == uint32_t(in) && p.b->type == uint32_t(in) &&
               p.d->type == uint32_t(out) && p.desc->scale == scale;
    }
    // Runs the instance for these types, or says that there is none.
    cublasStatus_t run_types() const {
        auto compute = problem.desc->compute;
        if (compute == CUBLAS_COMPUTE_64F && is(CUDA_R_64F, CUDA_R_64F, CUDA_R_64F))
            return run<double, double, double>();
        if (compute == CUBLAS_COMPUTE_32I && is(CUDA_R_8I, CUDA_R_32I, CUDA_R_32I))
            return run<signed char, int, int>();
        if (compute == CUBLAS_COMPUTE_16F && is(CUDA_R_16F, CUDA_R_16F, CUDA_R_16F))
            return run<__half, __half, __half>();
        if (compute == CUBLAS_COMPUTE_32F || inputs() != InputType::as_given) {
            if (is(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F))
                return run<float, float, float>();
            if (is(CUDA_R_16F, CUDA_R_16F, CUDA_R_32F))
                return run<__half, __half, float>();
            if (is(CUDA_R_16F, CUDA_R_32F, CUDA_R_32F))
                return run<__half, float, float>();
            if (is(CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F))
                return run<__nv_bfloat16, __nv_bfloat16, float>();
            if (is(CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F))
                return run<__nv_bfloat16, float, float>();
        }
        return problem.not_supported("this combination of types is not offered");
    }
};
}  // namespace cuda_cpu
#include "../macros_back.inc"
