// expect: race; line 14; mode: check
// Volatile does not say in which order other blocks see two stores: the count may come first.
#include <cstdio>
__global__ void total(unsigned* sums, unsigned* count, unsigned* out) {
    if (threadIdx.x)
        return;
    volatile unsigned* seen = sums;
    seen[blockIdx.x] = blockIdx.x + 1;
    unsigned before = atomicAdd(count, 1);
    __threadfence();  // too late: it stands behind the count
    if (before == gridDim.x - 1) {
        unsigned all = 0;
        for (int b = 0; b < gridDim.x; b++)
            all += seen[b];
        *out = all;
    }
}
int main() {
    unsigned *sums, *count, *out;
    cudaMalloc(&sums, 8 * sizeof(unsigned));
    cudaMalloc(&count, sizeof(unsigned));
    cudaMalloc(&out, sizeof(unsigned));
    cudaMemset(count, 0, sizeof(unsigned));
    total<<<8, 32>>>(sums, count, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(sums);
    cudaFree(count);
    cudaFree(out);
}
