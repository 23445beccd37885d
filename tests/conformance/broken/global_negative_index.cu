// expect: out-of-bounds; line 7; mode: check
// The first thread reads element -1.
#include <cstdio>
__global__ void shift(int* out, const int* in, int n) {
    int i = threadIdx.x;
    if (i < n)
        out[i] = in[i - 1];
}
int main() {
    const int n = 32;
    int *in, *out;
    cudaMalloc(&in, n * sizeof(int));
    cudaMalloc(&out, n * sizeof(int));
    cudaMemset(in, 0, n * sizeof(int));
    shift<<<1, n>>>(out, in, n);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
