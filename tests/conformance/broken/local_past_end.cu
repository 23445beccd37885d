// expect: out-of-bounds; line 7; mode: check
// A local array is filled one element too far.
#include <cstdio>
__global__ void tally(int* out, int n) {
    int counts[4];
    for (int i = 0; i <= n; i++) {
        counts[i] = i + threadIdx.x;
    }
    out[threadIdx.x] = counts[n - 1];
}
int main() {
    int* out;
    cudaMalloc(&out, 32 * sizeof(int));
    tally<<<1, 32>>>(out, 4);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
