// expect: empty-launch; line 11; mode: fast
// Rounding down gives a grid of no blocks.
#include <cstdio>
__global__ void set(int* out, int n) {
    if (threadIdx.x < n)
        out[threadIdx.x] = 1;
}
int main() {
    int *out, n = 100;
    cudaMalloc(&out, n * sizeof(int));
    set<<<n / 256, 256>>>(out, n);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    cudaFree(out);
}
