// expect: too-many-threads; line 10; mode: fast
// A block of 64 x 32 threads.
#include <cstdio>
__global__ void set(int* out) {
    out[threadIdx.y * 64 + threadIdx.x] = 1;
}
int main() {
    int* out;
    cudaMalloc(&out, 2048 * sizeof(int));
    set<<<1, dim3(64, 32)>>>(out);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    cudaFree(out);
}
