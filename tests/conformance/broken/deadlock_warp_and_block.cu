// expect: deadlock; line 7 or 9; mode: fast
// Half of a warp waits in a shuffle for the other half, which waits at the block's barrier.
#include <cstdio>
__global__ void wait(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x < 16)
        v = __shfl_sync(0xffffffff, v, 20);
    else
        __syncthreads();
    out[threadIdx.x] = v;
}
int main() {
    int* out;
    cudaMalloc(&out, 32 * sizeof(int));
    wait<<<1, 32>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
