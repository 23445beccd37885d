// expect: race; line 12; mode: check
// Atomic operations on two places: without a fence another block may see the second one first.
#include <cstdio>
__global__ void total(unsigned* sums, unsigned* count, unsigned* out) {
    if (threadIdx.x)
        return;
    atomicExch(&sums[blockIdx.x], blockIdx.x + 1);
    __threadfence_block();  // for this block alone
    if (atomicAdd(count, 1) == gridDim.x - 1) {
        unsigned all = 0;
        for (int b = 0; b < gridDim.x; b++)
            all += atomicOr(&sums[b], 0);
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
