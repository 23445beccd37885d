// More than 48 KiB of dynamic shared memory: refused until the kernel's limit is raised.
#include <cstdio>

__global__ void fill(int* out, int n) {
    extern __shared__ int buffer[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        buffer[i] = i;
    __syncthreads();
    if (threadIdx.x == 0)
        *out = buffer[n - 1] + buffer[0];
}

int main() {
    const int n = 15 * 1024, bytes = n * sizeof(int);
    int* out;
    cudaMallocManaged(&out, sizeof(int));
    *out = -1;
    fill<<<1, 128, bytes>>>(out, n);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    printf("%s\n", cudaGetErrorName(cudaFuncSetAttribute(
                       fill, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    fill<<<1, 128, bytes>>>(out, n);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    printf("%d\n", *out);
    cudaFree(out);
}
