// expect: barrier-divergence; line 8; mode: fast
// Only half of the block reaches the barrier, and waits for the other half at its end.
#include <cstdio>
__global__ void half(int* out) {
    __shared__ int box[64];
    box[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32) {
        __syncthreads();
        out[threadIdx.x] = box[63 - threadIdx.x];
    }
}
int main() {
    int* out;
    cudaMalloc(&out, 64 * sizeof(int));
    half<<<1, 64>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
