// Three-dimensional blocks and grids; unset dim3 members are 1.
#include <cstdio>

__global__ void where(int* count, int* weighted) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int i = (z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x;
    count[i] += 1;
    weighted[i] = x + 10 * y + 100 * z;
}

int main() {
    dim3 grid(2, 3, 2), block(2, 1, 3), unset;
    const int n = 4 * 3 * 6;
    int *count, *weighted;
    cudaMallocManaged(&count, n * sizeof(int));
    cudaMallocManaged(&weighted, n * sizeof(int));
    for (int i = 0; i < n; i++)
        count[i] = 0;
    where<<<grid, block>>>(count, weighted);
    cudaDeviceSynchronize();
    int once = 0;
    for (int i = 0; i < n; i++)
        once += count[i] == 1;
    printf("dim3 %u %u %u, unset %u %u %u\n", grid.x, grid.y, grid.z, unset.x, unset.y, unset.z);
    printf("visited once: %d of %d\n", once, n);
    printf("%d %d %d %d %d\n", weighted[0], weighted[3], weighted[4], weighted[12],
           weighted[n - 1]);
    cudaFree(count);
    cudaFree(weighted);
}
