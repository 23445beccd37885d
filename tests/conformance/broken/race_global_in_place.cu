// expect: race; line 7; mode: check
// A stencil works in place: neighbours in other blocks may be old or new.
#include <cstdio>
__global__ void smooth(float* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1)
        data[i] = (data[i - 1] + data[i + 1]) / 2;
}
int main() {
    float* data;
    cudaMalloc(&data, 256 * sizeof(float));
    cudaMemset(data, 0, 256 * sizeof(float));
    smooth<<<8, 32>>>(data, 256);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(data);
}
