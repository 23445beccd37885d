// expect: out-of-bounds; line 7; mode: check
// A stencil reads the neighbour of the last element.
#include <cstdio>
__global__ void difference(const int* in, int* out, int n) {
    int i = threadIdx.x;
    if (i < n) {
        out[i] = in[i + 1] - in[i];
    }
}
int main() {
    const int n = 64;
    int *in, *out;
    cudaMalloc(&in, n * sizeof(int));
    cudaMalloc(&out, n * sizeof(int));
    cudaMemset(in, 0, n * sizeof(int));
    difference<<<1, n>>>(in, out, n);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
