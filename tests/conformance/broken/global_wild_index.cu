// expect: out-of-bounds; line 6; mode: fast
// An index in bytes is used as an index in elements, far outside of everything.
#include <cstdio>
__global__ void set(float* out, size_t row_bytes) {
    size_t row = threadIdx.x;
    out[row * row_bytes * row_bytes] = 1;
}
int main() {
    float* out;
    cudaMalloc(&out, 64 * 1024 * sizeof(float));
    set<<<1, 64>>>(out, 1024 * sizeof(float));
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
