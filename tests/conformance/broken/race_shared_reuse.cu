// expect: race; line 9 or 11; mode: check
// The tile is filled for the next round while others still read it: the second barrier is missing.
#include <cstdio>
__global__ void rotate(const int* in, int* out, int rounds) {
    __shared__ int tile[64];
    int t = threadIdx.x, sum = 0;
    for (int r = 0; r < rounds; r++) {
        // missing: __syncthreads(), before the tile is filled again
        tile[t] = in[r * 64 + t];
        __syncthreads();
        sum += tile[(t + 33) % 64];
    }
    out[t] = sum;
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 256 * sizeof(int));
    cudaMalloc(&out, 64 * sizeof(int));
    cudaMemset(in, 0, 256 * sizeof(int));
    rotate<<<1, 64>>>(in, out, 4);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
