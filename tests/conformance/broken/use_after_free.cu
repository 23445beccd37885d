// expect: use-after-free; line 11; mode: fast
// The array is freed before the kernel that uses it.
#include <cstdio>
__global__ void set(int* out) {
    out[threadIdx.x] = 1;
}
int main() {
    int* out;
    cudaMalloc(&out, 32 * sizeof(int));
    cudaFree(out);
    set<<<1, 32>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
