// expect: race; line 9 or 11; mode: check
// One thread clears the counter while others already count: an atomic does not order a plain write.
#include <cstdio>
__global__ void count(const int* in, int* out) {
    __shared__ int total;
    int t = threadIdx.x;
    // missing: __syncthreads() after the counter is cleared
    if (t == 0)
        total = 0;
    if (in[t] == 0)
        atomicAdd(&total, 1);
    __syncthreads();
    if (t == 0)
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
