// expect: out-of-bounds; line 8; mode: check
// The left neighbour of the first thread.
#include <cstdio>
__global__ void smooth(const int* in, int* out) {
    __shared__ int tile[32];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[(int)threadIdx.x - 1] + tile[threadIdx.x];
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 32 * sizeof(int));
    cudaMalloc(&out, 32 * sizeof(int));
    cudaMemset(in, 0, 32 * sizeof(int));
    smooth<<<1, 32>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
