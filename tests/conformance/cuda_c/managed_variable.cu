// Managed variables are read and written by host and device under one name.
#include <cstdio>

__device__ __managed__ int counter = 5;
__managed__ float table[3] = {1.0f, 2.0f, 3.0f};

__global__ void work() {
    atomicAdd(&counter, 2);
    if (threadIdx.x < 3)
        table[threadIdx.x] *= 10.0f;
}

int main() {
    counter += 1;
    work<<<1, 4>>>();
    cudaDeviceSynchronize();
    printf("%d %.0f %.0f %.0f\n", counter, table[0], table[1], table[2]);
}
