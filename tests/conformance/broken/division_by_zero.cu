// expect: division-by-zero; line 5; mode: fast
// The number of columns is not set.
#include <cstdio>
__global__ void split(int* out, int cols) {
    out[threadIdx.x] = threadIdx.x % cols;
}
int main() {
    int* out;
    cudaMalloc(&out, 32 * sizeof(int));
    split<<<1, 32>>>(out, 0);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
