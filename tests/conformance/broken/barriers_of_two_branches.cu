// expect: barrier-divergence; line 7 or 10; mode: fast
// Each branch has a barrier of its own: they are not the same barrier.
#include <cstdio>
__global__ void branches(int* out) {
    if (threadIdx.x % 2) {
        out[threadIdx.x] = 1;
        __syncthreads();
    } else {
        out[threadIdx.x] = 2;
        __syncthreads();
    }
}
int main() {
    int* out;
    cudaMalloc(&out, 64 * sizeof(int));
    branches<<<1, 64>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
