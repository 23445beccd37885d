// expect: race; line 16; mode: check
// The block with the last number adds up what the others stored. A fence makes a store visible; it
// does not say that it has happened, and nobody counts the blocks.
#include <cstdio>
__global__ void total(const int* in, int* sums, int* out) {
    if (threadIdx.x)
        return;
    int sum = 0;
    for (int i = 0; i < 32; i++)
        sum += in[blockIdx.x * 32 + i];
    sums[blockIdx.x] = sum;
    __threadfence();
    if (blockIdx.x == gridDim.x - 1) {
        int all = 0;
        for (int b = 0; b < gridDim.x; b++)
            all += sums[b];
        *out = all;
    }
}
int main() {
    int *in, *sums, *out;
    cudaMalloc(&in, 256 * sizeof(int));
    cudaMalloc(&sums, 8 * sizeof(int));
    cudaMalloc(&out, sizeof(int));
    cudaMemset(in, 0, 256 * sizeof(int));
    total<<<8, 32>>>(in, sums, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(sums);
    cudaFree(out);
}
