// flags: -lcublas -lcufft -lcurand
// What cuBLAS, cuFFT and cuRAND answer to wrong calls, and plans that are made in steps.
#include <cmath>
#include <cstdio>
#include <cublas_v2.h>
#include <cufft.h>
#include <curand.h>

int main() {
    float *a, *b, *c, one = 1, zero = 0;
    for (float** p : {&a, &b, &c})
        cudaMallocManaged(p, 64 * sizeof(float));
    for (int i = 0; i < 64; i++)
        a[i] = i, b[i] = 1, c[i] = -1;
    cublasHandle_t handle;
    cublasCreate(&handle);
    auto gemm = [&](int m, int n, int k, int lda, int ldb, int ldc) {
        return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &one, a, lda, b, ldb, &zero,
                           c, ldc);
    };
    printf("%d ", gemm(4, 3, 2, 3, 3, 4));
    printf("%d ", gemm(4, 3, 2, 4, 2, 4));
    printf("%d ", gemm(4, 3, 2, 4, 3, 3));
    printf("%d ", gemm(4, 0, 2, 4, 1, 4));
    printf("%d\n", gemm(4, 3, 2, 4, 3, 4));
    cudaDeviceSynchronize();
    printf("%g %g %g\n", c[0], c[3], c[11]);
    printf("%s\n", cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE));
    signed char *p, *q;
    int *r, i_one = 1, i_zero = 0;
    cudaMallocManaged(&p, 16);
    cudaMallocManaged(&q, 16);
    cudaMallocManaged(&r, 16 * sizeof(int));
    for (int i = 0; i < 16; i++)
        p[i] = i * 8, q[i] = -i;
    int status = cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 4, 4, 4, &i_one, p, CUDA_R_8I, 4, q,
                              CUDA_R_8I, 4, &i_zero, r, CUDA_R_32I, 4, CUBLAS_COMPUTE_32I,
                              CUBLAS_GEMM_DEFAULT);
    cudaDeviceSynchronize();
    printf("%d: %d %d %d\n", status, r[0], r[1], r[15]);
    cublasDestroy(handle);

    cufftHandle plan;
    size_t bytes = 1;
    cufftComplex* data = (cufftComplex*)a;
    printf("%d ", cufftCreate(&plan));
    printf("%d ", cufftExecC2C(plan, data, data, CUFFT_FORWARD));
    printf("%d ", cufftMakePlan1d(plan, 8, CUFFT_C2C, 2, &bytes));
    size_t again = 2;
    printf("%d ", cufftGetSize(plan, &again));
    printf("%d", again == bytes);
    for (int i = 0; i < 16; i++)
        data[i] = {i < 8 ? 1.0f : 2.0f, 0};
    printf(" %d", cufftExecC2C(plan, data, data, CUFFT_FORWARD));
    cudaDeviceSynchronize();
    printf(": %g %g\n", std::round(data[0].x), std::round(data[8].x));
    printf("%d", cufftDestroy(plan));
    printf(" %d", cufftExecC2C(plan, data, data, CUFFT_FORWARD));
    printf(" %d\n", cufftPlan1d(&plan, 0, CUFFT_C2C, 1));

    curandGenerator_t generator;
    curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10);
    printf("%d", curandGenerateNormal(generator, a, 7, 0, 1));
    printf(" %d\n", curandGenerateNormal(generator, a, 8, 0, 1));
    curandDestroyGenerator(generator);
    for (void* m : {(void*)a, (void*)b, (void*)c, (void*)p, (void*)q, (void*)r})
        cudaFree(m);
}
