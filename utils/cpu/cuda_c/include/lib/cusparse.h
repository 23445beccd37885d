// cuSPARSE's generic interface on the CPU: matrices in CSR and COO, dense vectors and matrices,
// SpMV and SpMM in float, double, half and bfloat16 (summed in float).
//
// Which algorithm is asked for changes nothing here; a transposed product is computed by one core.
#pragma once
#define CUSPARSEAPI  // asked for by helper_cuda.h
#include <vector>
#include "cusparse/types.h"
#include "macros_aside.inc"

namespace cuda_cpu {
// The entries of row r of a CSR matrix, or all entries of a COO matrix: f(row, column, value).
template <class T, class F>
inline void each_entry(const cusparseSpMatDescr& a, long r, F f) {
    int64_t first = 0, last = a.count;
    if (a.csr) {
        first = index_at(a.offsets, a.wide_offsets, r) - a.base;
        last = index_at(a.offsets, a.wide_offsets, r + 1) - a.base;
    }
    for (int64_t i = first; i < last; i++) {
        int64_t row = a.csr ? r : index_at(a.offsets, a.wide_offsets, i) - a.base;
        f(row, index_at(a.columns, a.wide_columns, i) - a.base, ((const T*)a.values)[i]);
    }
}

// A dense operand of SpMV (one column) or SpMM.
struct Dense {
    int64_t rows, cols, down, across;
    void* values;
};
inline Dense dense(const cusparseDnVecDescr* v) {
    return {v->size, 1, 1, v->size, v->values};
}
inline Dense dense(const cusparseDnMatDescr* m) {
    bool columns = m->order == CUSPARSE_ORDER_COL;
    return {m->rows, m->cols, columns ? 1 : m->ld, columns ? m->ld : 1, m->values};
}

// y = alpha op(a) x + beta y.
template <class T, class S>
inline cudaError_t sparse_product(cusparseHandle_t h, bool transposed, const S* alpha,
                                  const cusparseSpMatDescr& matrix, Dense x, const S* beta,
                                  Dense y) {
    bool on_device = h->pointer_mode == CUSPARSE_POINTER_MODE_DEVICE;
    S host_alpha = on_device ? S(0) : *alpha, host_beta = on_device ? S(0) : *beta;
    const cusparseSpMatDescr a = matrix;
    const T* from = (const T*)x.values;
    T* to = (T*)y.values;
    auto finish = [=](int64_t row, int64_t col, S sum) {
        S scale = on_device ? *alpha : host_alpha, keep = on_device ? *beta : host_beta;
        T& place = to[row * y.down + col * y.across];
        S value = scale * sum;
        place = T(keep == S(0) ? value : value + keep * S(place));
    };
    if (a.csr && !transposed)
        return device_task(h->stream, a.rows, [=](long r) {
            for (int64_t col = 0; col < y.cols; col++) {
                S sum = 0;
                each_entry<T>(a, r, [&](int64_t, int64_t column, const T& value) {
                    sum += S(value) * S(from[column * x.down + col * x.across]);
                });
                finish(r, col, sum);
            }
        });
    return device_task(h->stream, y.cols, [=](long col) {
        std::vector<S> sums(y.rows);
        for (long r = 0; r < (a.csr ? a.rows : 1); r++)
            each_entry<T>(a, r, [&](int64_t row, int64_t column, const T& value) {
                int64_t in = transposed ? row : column, out = transposed ? column : row;
                sums[out] += S(value) * S(from[in * x.down + col * x.across]);
            });
        for (int64_t row = 0; row < y.rows; row++)
            finish(row, col, sums[row]);
    });
}

template <class X, class Y>
struct SparseCall {
    const char* call;
    cusparseHandle_t h;
    cusparseOperation_t op;
    const void* alpha;
    const cusparseSpMatDescr* a;
    const X* x;
    const void* beta;
    const Y* y;
    cudaDataType compute;

    cusparseStatus_t check() const {
        if (!h)
            return CUSPARSE_STATUS_NOT_INITIALIZED;
        if (!a || !x || !y || !alpha || !beta)
            return sparse_invalid(call, "a descriptor or a scalar is a null pointer");
        int64_t rows = op == CUSPARSE_OPERATION_NON_TRANSPOSE ? a->rows : a->cols;
        int64_t cols = op == CUSPARSE_OPERATION_NON_TRANSPOSE ? a->cols : a->rows;
        if (dense(x).rows != cols || dense(y).rows != rows || dense(x).cols != dense(y).cols)
            return sparse_invalid(call, "the sizes of matrix and operands do not fit");
        bool half = a->type == CUDA_R_16F || a->type == CUDA_R_16BF;
        bool fits = compute == (half ? CUDA_R_32F : a->type);
        if (x->type != a->type || y->type != a->type || !fits) {
            fprintf(stderr, "%s: CUSPARSE_STATUS_NOT_SUPPORTED: this combination of types\n", call);
            return CUSPARSE_STATUS_NOT_SUPPORTED;
        }
        return CUSPARSE_STATUS_SUCCESS;
    }
    template <class T, class S>
    cudaError_t run_as() const {
        return sparse_product<T, S>(h, op == CUSPARSE_OPERATION_TRANSPOSE, (const S*)alpha, *a,
                                    dense(x), (const S*)beta, dense(y));
    }
    // A row's worth of sums for each block of rows, as CSR algorithms want.
    size_t buffer() const {
        return size_t(a->rows + 255) / 256 * 256 * sizeof(int);
    }
    cusparseStatus_t run(const void* given) const {
        if (cusparseStatus_t wrong = check())
            return wrong;
        if (!given && buffer())
            return sparse_invalid(call, "the external buffer is null, but bufferSize is not 0");
        cudaError_t error = cudaErrorNotSupported;
        if (a->type == CUDA_R_32F)
            error = run_as<float, float>();
        else if (a->type == CUDA_R_64F)
            error = run_as<double, double>();
        else if (a->type == CUDA_R_16F)
            error = run_as<__half, float>();
        else if (a->type == CUDA_R_16BF)
            error = run_as<__nv_bfloat16, float>();
        if (error == cudaErrorNotSupported)
            return CUSPARSE_STATUS_NOT_SUPPORTED;
        return error == cudaSuccess ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
    }
};
}  // namespace cuda_cpu

inline cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t h, cusparseOperation_t op,
                                                const void* alpha, cusparseConstSpMatDescr_t a,
                                                cusparseConstDnVecDescr_t x, const void* beta,
                                                cusparseDnVecDescr_t y, cudaDataType compute,
                                                cusparseSpMVAlg_t, size_t* bytes) {
    ::cuda_cpu::SparseCall<cusparseDnVecDescr, cusparseDnVecDescr> p{
        "cusparseSpMV_bufferSize", h, op, alpha, a, x, beta, y, compute};
    if (cusparseStatus_t wrong = p.check())
        return wrong;
    *bytes = p.buffer();
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseSpMV_preprocess(cusparseHandle_t h, cusparseOperation_t op,
                                                const void* alpha, cusparseConstSpMatDescr_t a,
                                                cusparseConstDnVecDescr_t x, const void* beta,
                                                cusparseDnVecDescr_t y, cudaDataType compute,
                                                cusparseSpMVAlg_t, void*) {
    ::cuda_cpu::SparseCall<cusparseDnVecDescr, cusparseDnVecDescr> p{
        "cusparseSpMV_preprocess", h, op, alpha, a, x, beta, y, compute};
    return p.check();
}
inline cusparseStatus_t cusparseSpMV(cusparseHandle_t h, cusparseOperation_t op, const void* alpha,
                                     cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x,
                                     const void* beta, cusparseDnVecDescr_t y, cudaDataType compute,
                                     cusparseSpMVAlg_t, void* buffer) {
    ::cuda_cpu::SparseCall<cusparseDnVecDescr, cusparseDnVecDescr> p{
        "cusparseSpMV", h, op, alpha, a, x, beta, y, compute};
    return p.run(buffer);
}

inline cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t h, cusparseOperation_t op,
                                                cusparseOperation_t op_b, const void* alpha,
                                                cusparseConstSpMatDescr_t a,
                                                cusparseConstDnMatDescr_t b, const void* beta,
                                                cusparseDnMatDescr_t c, cudaDataType compute,
                                                cusparseSpMMAlg_t, size_t* bytes) {
    ::cuda_cpu::SparseCall<cusparseDnMatDescr, cusparseDnMatDescr> p{
        "cusparseSpMM_bufferSize", h, op, alpha, a, b, beta, c, compute};
    if (op_b != CUSPARSE_OPERATION_NON_TRANSPOSE)
        return CUSPARSE_STATUS_NOT_SUPPORTED;
    if (cusparseStatus_t wrong = p.check())
        return wrong;
    *bytes = p.buffer();
    return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseSpMM(cusparseHandle_t h, cusparseOperation_t op,
                                     cusparseOperation_t op_b, const void* alpha,
                                     cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                     const void* beta, cusparseDnMatDescr_t c, cudaDataType compute,
                                     cusparseSpMMAlg_t, void* buffer) {
    ::cuda_cpu::SparseCall<cusparseDnMatDescr, cusparseDnMatDescr> p{
        "cusparseSpMM", h, op, alpha, a, b, beta, c, compute};
    if (op_b != CUSPARSE_OPERATION_NON_TRANSPOSE)
        return CUSPARSE_STATUS_NOT_SUPPORTED;
    return p.run(buffer);
}
#include "macros_back.inc"
