// flags: -lcublas
// cuBLAS: rank-one updates, sums of matrices and transposes, lists of matrices, vectors copied with
// strides, bfloat16.
#include <cstdio>
#include <cublas_v2.h>
#include <cuda_bf16.h>

int main() {
    cublasHandle_t handle;
    cublasCreate(&handle);
    float *a, *b, *c, one = 1, three = 3, zero = 0, **lists;
    cudaMallocManaged(&a, 16 * sizeof(float));
    cudaMallocManaged(&b, 16 * sizeof(float));
    cudaMallocManaged(&c, 16 * sizeof(float));
    cudaMallocManaged(&lists, 6 * sizeof(float*));
    for (int i = 0; i < 16; i++)
        a[i] = i, b[i] = 16 - i, c[i] = 0;
    cublasSger(handle, 3, 2, &three, a, 1, b, 2, c, 3);
    cudaDeviceSynchronize();
    for (int i = 0; i < 6; i++)
        printf("%g ", c[i]);
    printf("\n");
    cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 3, &one, a, 3, &three, b, 2, c, 2);
    cudaDeviceSynchronize();
    for (int i = 0; i < 6; i++)
        printf("%g ", c[i]);
    printf("\n");
    for (int i = 0; i < 2; i++)
        lists[i] = a + 4 * i, lists[2 + i] = b + 8 * i, lists[4 + i] = c + 4 * i;
    cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 2, &one, (const float* const*)lists,
                       2, (const float* const*)(lists + 2), 2, &zero, lists + 4, 2, 2);
    cudaDeviceSynchronize();
    for (int i = 0; i < 8; i++)
        printf("%g ", c[i]);
    printf("\n");
    float host[8] = {1, -1, 2, -1, 3, -1, 4, -1}, back[8] = {};
    cublasSetVector(4, sizeof(float), host, 2, a, 1);
    cublasGetVector(4, sizeof(float), a, 1, back, 2);
    for (float x : back)
        printf("%g ", x);
    printf("\n");
    __nv_bfloat16 *ba, *bb;
    cudaMallocManaged(&ba, 4 * sizeof(__nv_bfloat16));
    cudaMallocManaged(&bb, 4 * sizeof(__nv_bfloat16));
    for (int i = 0; i < 4; i++)
        ba[i] = __float2bfloat16(i + 0.5f), bb[i] = __float2bfloat16(2.0f * i - 3);
    cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, ba, CUDA_R_16BF, 2, bb,
                 CUDA_R_16BF, 2, &zero, c, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; i++)
        printf("%g ", c[i]);
    printf("%s\n", cublasGetStatusString(CUBLAS_STATUS_SUCCESS));
    cublasDestroy(handle);
    for (float* p : {a, b, c})
        cudaFree(p);
    cudaFree(lists);
    cudaFree(ba);
    cudaFree(bb);
}
