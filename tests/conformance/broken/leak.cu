// expect: leak; line 11; mode: fast
// One of the two arrays is never freed.
#include <cstdio>
__global__ void copy(const int* in, int* out) {
    out[threadIdx.x] = in[threadIdx.x];
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 32 * sizeof(int));
    cudaMemset(in, 0, 32 * sizeof(int));
    cudaMalloc(&out, 32 * sizeof(int));
    copy<<<1, 32>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
}
