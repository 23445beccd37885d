// One-dimensional index arithmetic, with a guard for the threads past the end.
#include <cstdio>

__global__ void where(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 1000 * blockIdx.x + threadIdx.x + 100000 * gridDim.x;
}

int main() {
    const int n = 10;
    int host[n], *device;
    cudaMalloc(&device, n * sizeof(int));
    where<<<(n + 3) / 4, 4>>>(device, n);
    cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++)
        printf("%d ", host[i]);
    printf("\n");
    cudaFree(device);
}
