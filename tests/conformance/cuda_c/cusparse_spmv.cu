// flags: -lcusparse
// cuSPARSE: a matrix in CSR and in COO, times a vector, transposed, and times a dense matrix.
#include <cstdio>
#include <cusparse.h>

int main() {
    // 10  0 20  0
    //  0  0  0  0
    //  0 30  0 40
    const int rows = 3, cols = 4, count = 4;
    const int host_offsets[] = {0, 2, 2, 4}, host_rows[] = {0, 0, 2, 2}, host_cols[] = {0, 2, 1, 3};
    int *offsets, *row_of, *columns;
    float *values, *x, *y;
    for (int** p : {&offsets, &row_of, &columns})
        cudaMallocManaged(p, 8 * sizeof(int));
    for (float** p : {&values, &x, &y})
        cudaMallocManaged(p, 16 * sizeof(float));
    for (int i = 0; i < 4; i++) {
        offsets[i] = host_offsets[i], row_of[i] = host_rows[i], columns[i] = host_cols[i];
        values[i] = 10 * (i + 1);
    }
    for (int i = 0; i < 16; i++)
        x[i] = i + 1, y[i] = 100;
    cusparseHandle_t handle;
    cusparseCreate(&handle);
    cusparseSpMatDescr_t csr, coo;
    cusparseCreateCsr(&csr, rows, cols, count, offsets, columns, values, CUSPARSE_INDEX_32I,
                      CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
    cusparseCreateCoo(&coo, rows, cols, count, row_of, columns, values, CUSPARSE_INDEX_32I,
                      CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
    cusparseDnVecDescr_t wide, tall;
    cusparseCreateDnVec(&wide, cols, x, CUDA_R_32F);
    cusparseCreateDnVec(&tall, rows, y, CUDA_R_32F);
    float two = 2, one = 1, zero = 0;
    for (auto matrix : {csr, coo}) {
        size_t bytes = 0;
        void* buffer = nullptr;
        auto op = CUSPARSE_OPERATION_NON_TRANSPOSE;
        cusparseSpMV_bufferSize(handle, op, &two, matrix, wide, &one, tall, CUDA_R_32F,
                                CUSPARSE_SPMV_ALG_DEFAULT, &bytes);
        cudaMalloc(&buffer, bytes ? bytes : 1);
        int status = cusparseSpMV(handle, op, &two, matrix, wide, &one, tall, CUDA_R_32F,
                                  CUSPARSE_SPMV_ALG_DEFAULT, buffer);
        cudaDeviceSynchronize();
        printf("%d: %g %g %g\n", status, y[0], y[1], y[2]);
        op = CUSPARSE_OPERATION_TRANSPOSE;
        cusparseSpMV(handle, op, &one, matrix, tall, &zero, wide, CUDA_R_32F,
                     CUSPARSE_SPMV_ALG_DEFAULT, buffer);
        cudaDeviceSynchronize();
        printf("%g %g %g %g\n", x[0], x[1], x[2], x[3]);
        cudaFree(buffer);
        for (int i = 0; i < 16; i++)
            x[i] = i + 1;
    }
    cusparseDnMatDescr_t b, c;
    cusparseCreateDnMat(&b, cols, 2, cols, x, CUDA_R_32F, CUSPARSE_ORDER_COL);
    cusparseCreateDnMat(&c, rows, 2, rows, y, CUDA_R_32F, CUSPARSE_ORDER_COL);
    size_t bytes = 0;
    void* buffer = nullptr;
    auto op = CUSPARSE_OPERATION_NON_TRANSPOSE;
    cusparseSpMM_bufferSize(handle, op, op, &one, csr, b, &zero, c, CUDA_R_32F,
                            CUSPARSE_SPMM_ALG_DEFAULT, &bytes);
    cudaMalloc(&buffer, bytes ? bytes : 1);
    int status = cusparseSpMM(handle, op, op, &one, csr, b, &zero, c, CUDA_R_32F,
                              CUSPARSE_SPMM_ALG_DEFAULT, buffer);
    cudaDeviceSynchronize();
    printf("%d: %g %g %g %g %g %g\n", status, y[0], y[1], y[2], y[3], y[4], y[5]);
    printf("%s\n", cusparseGetErrorName(CUSPARSE_STATUS_INVALID_VALUE));
    cusparseDestroyDnMat(b);
    cusparseDestroyDnMat(c);
    cusparseDestroyDnVec(wide);
    cusparseDestroyDnVec(tall);
    cusparseDestroySpMat(csr);
    cusparseDestroySpMat(coo);
    cusparseDestroy(handle);
    cudaFree(buffer);
    for (int* p : {offsets, row_of, columns})
        cudaFree(p);
    for (float* p : {values, x, y})
        cudaFree(p);
}
