// expect: uninitialised; line 8 or 11; mode: check
// Shared memory does not start at zero.
#include <cstdio>
__global__ void count(const int* in, int* out) {
    __shared__ int total;
    // missing: if (threadIdx.x == 0) total = 0; __syncthreads();
    if (in[threadIdx.x] == 0)
        atomicAdd(&total, 1);
    __syncthreads();
    if (threadIdx.x == 0)
        *out = total;
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 64 * sizeof(int));
    cudaMalloc(&out, sizeof(int));
    cudaMemset(in, 0, 64 * sizeof(int));
    count<<<1, 64>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
