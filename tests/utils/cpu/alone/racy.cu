// Every thread adds to one number without an atomic operation.
#include <cstdio>

__global__ void count(int* total) {
    *total = *total + 1;
}

int main() {
    int* total;
    cudaMallocManaged(&total, sizeof(int));
    *total = 0;
    count<<<2, 64>>>(total);
    if (cudaDeviceSynchronize() != cudaSuccess)
        return 1;
    printf("%d\n", *total);
}
