// A sticky error: after a trap every call fails with the same error until the process ends.
#include <cstdio>

__global__ void fail(int when) {
    if (when == 1)
        __trap();
}

int main() {
    int* p;
    cudaMalloc(&p, 4);
    fail<<<1, 1>>>(0);
    printf("before: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    fail<<<1, 1>>>(1);
    cudaError_t error = cudaDeviceSynchronize();
    printf("after: %d\n", error != cudaSuccess);
    printf("synchronize: %d\n", cudaDeviceSynchronize() == error);
    printf("last: %d", cudaGetLastError() == error);
    printf(" %d\n", cudaGetLastError() == error);
    printf("memset: %d\n", cudaMemset(p, 0, 4) == error);
    printf("malloc: %d\n", cudaMalloc(&p, 4) == error);
    fail<<<1, 1>>>(0);
    printf("launch: %d\n", cudaGetLastError() == error);
    printf("synchronize: %d\n", cudaDeviceSynchronize() == error);
}
