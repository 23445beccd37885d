// expect: race; line 13; mode: check
// Block 0 sends a value and then a flag, for which the others wait: nothing keeps the order.
#include <cstdio>
__global__ void total(unsigned* sums, unsigned* count, unsigned* out) {
    if (threadIdx.x)
        return;
    volatile unsigned *value = sums, *flag = count;
    if (blockIdx.x == 0) {
        *value = 7;
        *flag = 1;
    } else if (blockIdx.x == 7) {
        while (*flag == 0) {}
        *out = *value;
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
