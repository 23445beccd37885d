// expect: out-of-bounds; line 14; mode: fast
// The same without the slow checks: noticed after the kernel, at its launch.
#include <cstdio>
__global__ void fill(int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i;
}
int main() {
    const int n = 1000;
    int* out;
    cudaMalloc(&out, n * sizeof(int));
    int host[n];

    fill<<<4, 256>>>(out);
    cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
    printf("%d\n", host[n - 1]);
    cudaFree(out);
}
