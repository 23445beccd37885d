// expect: barrier-divergence; line 7; mode: fast
// The number of rounds, and so of barriers, differs between the threads.
#include <cstdio>
__global__ void rounds(int* out) {
    int sum = 0;
    for (int i = 0; i <= threadIdx.x / 16; i++) {
        __syncthreads();
        sum += i;
    }
    out[threadIdx.x] = sum;
}
int main() {
    int* out;
    cudaMalloc(&out, 64 * sizeof(int));
    rounds<<<1, 64>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
