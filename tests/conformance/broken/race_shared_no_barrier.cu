// expect: race; line 6 or 7; mode: check
// The barrier between writing and reading the tile is missing.
#include <cstdio>
__global__ void reverse(int* data) {
    __shared__ int tile[128];
    tile[threadIdx.x] = data[threadIdx.x];
    data[threadIdx.x] = tile[127 - threadIdx.x];
}
int main() {
    int* data;
    cudaMalloc(&data, 128 * sizeof(int));
    cudaMemset(data, 0, 128 * sizeof(int));
    reverse<<<1, 128>>>(data);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(data);
}
