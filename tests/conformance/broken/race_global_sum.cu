// expect: race; line 7; mode: check
// All threads add to one number without an atomic.
#include <cstdio>
__global__ void sum(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        *out += in[i];
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 256 * sizeof(int));
    cudaMalloc(&out, sizeof(int));
    cudaMemset(in, 0, 256 * sizeof(int));
    cudaMemset(out, 0, sizeof(int));
    sum<<<4, 64>>>(in, out, 256);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
