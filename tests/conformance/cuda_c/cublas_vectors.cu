// flags: -lcublas
// cuBLAS level 1 and gemv: indices from one, strides, scalars on host and device, status codes.
#include <cstdio>
#include <cublas_v2.h>

int main() {
    const int n = 6;
    float *x, *y, *a, *device_scalar, result = 0, alpha = 2.0f, beta = 1.0f, zero = 0.0f;
    double *d, dresult = 0;
    cudaMallocManaged(&x, n * sizeof(float));
    cudaMallocManaged(&y, n * sizeof(float));
    cudaMallocManaged(&a, 6 * sizeof(float));
    cudaMallocManaged(&device_scalar, sizeof(float));
    cudaMallocManaged(&d, n * sizeof(double));
    for (int i = 0; i < n; i++)
        x[i] = i + 1, y[i] = 10, a[i] = i + 1, d[i] = i % 2 ? -3 : 4;
    cublasHandle_t handle;
    printf("%d\n", (int)cublasCreate(&handle));
    cublasSaxpy(handle, n, &alpha, x, 1, y, 1);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i++)
        printf("%g ", y[i]);
    cublasSdot(handle, n, x, 1, y, 1, &result);
    printf("dot %g ", result);
    cublasDnrm2(handle, 2, d, 1, &dresult);
    printf("nrm2 %g ", dresult);
    cublasSasum(handle, 3, x, 2, &result);
    printf("asum %g ", result);
    int largest = 0, smallest = 0;
    cublasIdamax(handle, n, d, 1, &largest);
    cublasIsamin(handle, n, x, 1, &smallest);
    printf("amax %d amin %d\n", largest, smallest);
    cublasSscal(handle, 3, &alpha, x, 2);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i++)
        printf("%g ", x[i]);
    cublasSswap(handle, n, x, 1, y, 1);
    cublasScopy(handle, 2, y + 4, 1, y, 1);
    cudaDeviceSynchronize();
    printf("%g %g %g\n", x[0], y[0], y[1]);
    // a is the column-major 2 x 3 matrix (1 3 5; 2 4 6)
    for (int i = 0; i < n; i++)
        x[i] = i + 1, y[i] = 100;
    cublasSgemv(handle, CUBLAS_OP_N, 2, 3, &alpha, a, 2, x, 1, &beta, y, 1);
    cudaDeviceSynchronize();
    printf("%g %g %g ", y[0], y[1], y[2]);
    cublasSgemv(handle, CUBLAS_OP_T, 2, 3, &beta, a, 2, x, 1, &zero, y, 1);
    cudaDeviceSynchronize();
    printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
    cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
    cublasSdot(handle, 3, x, 1, x, 1, device_scalar);
    cudaDeviceSynchronize();
    printf("%g\n", *device_scalar);
    cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    printf("%d", (int)cublasSetStream(handle, stream));
    printf(" %d\n", (int)cublasSgemv(handle, CUBLAS_OP_N, -1, 3, &alpha, a, 2, x, 1, &beta, y, 1));
    cublasDestroy(handle);
    cudaStreamDestroy(stream);
    cudaFree(x);
    cudaFree(y);
    cudaFree(a);
    cudaFree(d);
    cudaFree(device_scalar);
}
