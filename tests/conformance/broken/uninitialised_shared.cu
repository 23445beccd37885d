// expect: uninitialised; line 10; mode: check
// Half of the tile is filled, all of it is read.
#include <cstdio>
__global__ void reverse(const int* in, int* out) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    if (t < 32)
        tile[t] = in[t];
    __syncthreads();
    out[t] = tile[63 - t];
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 64 * sizeof(int));
    cudaMalloc(&out, 64 * sizeof(int));
    cudaMemset(in, 0, 64 * sizeof(int));
    reverse<<<1, 64>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
