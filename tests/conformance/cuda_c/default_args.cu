// Default arguments of kernels and of device functions, also set in an earlier declaration.
#include <cstdio>

__global__ void fill(int* out, int n, int value = 7, int step = 1);

__device__ int twice(int x, int times = 2) {
    return x * times;
}

__global__ void fill(int* out, int n, int value, int step) {
    int i = threadIdx.x;
    if (i < n)
        out[i] = value + step * i + twice(i) + twice(i, 100);
}

int main() {
    int* out;
    cudaMallocManaged(&out, 3 * sizeof(int));
    fill<<<1, 32>>>(out, 3);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", out[0], out[1], out[2]);
    fill<<<1, 32>>>(out, 3, 50);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", out[0], out[1], out[2]);
    fill<<<1, 32>>>(out, 3, 50, 1000);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", out[0], out[1], out[2]);
    cudaFree(out);
}
