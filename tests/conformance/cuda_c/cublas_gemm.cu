// flags: -lcublas
// cuBLAS gemm: column-major, every transposition, leading dimensions, double, half, batches.
#include <cstdio>
#include <cublas_v2.h>
#include <cuda_fp16.h>

int main() {
    cublasHandle_t handle;
    cublasCreate(&handle);
    float *a, *b, *c, one = 1, half_ = 0.5f, two = 2;
    cudaMallocManaged(&a, 64 * sizeof(float));
    cudaMallocManaged(&b, 64 * sizeof(float));
    cudaMallocManaged(&c, 64 * sizeof(float));
    cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
    for (auto ta : ops)
        for (auto tb : ops) {
            const int m = 2, n = 3, k = 4, lda = ta == CUBLAS_OP_N ? 3 : 5,
                      ldb = tb == CUBLAS_OP_N ? 4 : 3, ldc = 4;
            for (int i = 0; i < 64; i++)
                a[i] = i % 7 - 2, b[i] = i % 5 - 1, c[i] = i;
            cublasSgemm(handle, ta, tb, m, n, k, &two, a, lda, b, ldb, &half_, c, ldc);
            cudaDeviceSynchronize();
            for (int i = 0; i < 12; i++)
                printf("%g ", c[i]);
            printf("\n");
        }
    double *da, *db, *dc, done = 1, dzero = 0;
    cudaMallocManaged(&da, 6 * sizeof(double));
    cudaMallocManaged(&db, 6 * sizeof(double));
    cudaMallocManaged(&dc, 4 * sizeof(double));
    for (int i = 0; i < 6; i++)
        da[i] = i + 1, db[i] = 6 - i;
    for (int i = 0; i < 4; i++)
        dc[i] = 0.0 / 0.0;  // with beta 0 the old values are not read
    cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &done, da, 2, db, 3, &dzero, dc, 2);
    cudaDeviceSynchronize();
    printf("%g %g %g %g\n", dc[0], dc[1], dc[2], dc[3]);
    __half *ha, *hb, *hc, hone = __float2half(1.0f), hzero = __float2half(0.0f);
    cudaMallocManaged(&ha, 8 * sizeof(__half));
    cudaMallocManaged(&hb, 8 * sizeof(__half));
    cudaMallocManaged(&hc, 8 * sizeof(__half));
    for (int i = 0; i < 8; i++)
        ha[i] = __float2half(i * 0.5f), hb[i] = __float2half(8.0f - i);
    cublasHgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 4, &hone, ha, 2, hb, 4, &hzero, hc, 2);
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; i++)
        printf("%g ", __half2float(hc[i]));
    float fzero = 0;
    cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 4, &one, ha, CUDA_R_16F, 4, hb, CUDA_R_16F,
                 4, &fzero, c, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cudaDeviceSynchronize();
    printf(" %g %g %g %g\n", c[0], c[1], c[2], c[3]);
    for (int i = 0; i < 12; i++)
        a[i] = i, b[i] = 1, c[i] = 0;
    cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, 4, b, 2, 4,
                              &one, c, 2, 4, 3);
    cudaDeviceSynchronize();
    for (int i = 0; i < 12; i++)
        printf("%g ", c[i]);
    printf("\n");
    cublasDestroy(handle);
    for (float* p : {a, b, c})
        cudaFree(p);
    for (double* p : {da, db, dc})
        cudaFree(p);
    for (__half* p : {ha, hb, hc})
        cudaFree(p);
}
