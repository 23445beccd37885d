// expect: lane-not-in-mask; line 7; mode: fast
// The mask names the lower half, but the whole warp takes part.
#include <cstdio>
__global__ void sum(int* out) {
    int v = threadIdx.x;
    for (int k = 8; k > 0; k /= 2)
        v += __shfl_xor_sync(0x0000ffff, v, k);
    out[threadIdx.x] = v;
}
int main() {
    int* out;
    cudaMalloc(&out, 32 * sizeof(int));
    sum<<<1, 32>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
