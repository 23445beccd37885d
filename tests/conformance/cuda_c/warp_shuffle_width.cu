// Shuffles in sub-warps of 4, 8 and 16 lanes, with source lanes out of range.
#include <cstdio>

__global__ void work(int* out) {
    int lane = threadIdx.x;
    const unsigned all = 0xffffffff;
    out[lane] = __shfl_sync(all, lane, 2, 8);
    out[32 + lane] = __shfl_sync(all, lane, 13, 8);
    out[64 + lane] = __shfl_up_sync(all, lane, 2, 4);
    out[96 + lane] = __shfl_down_sync(all, lane, 3, 16);
    out[128 + lane] = __shfl_xor_sync(all, lane, 1, 2);
    out[160 + lane] = __shfl_xor_sync(all, lane, 5, 4);
    out[192 + lane] = __shfl_sync(all, lane, lane + 1, 4);
}

int main() {
    int* out;
    cudaMallocManaged(&out, 224 * sizeof(int));
    work<<<1, 32>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 224; i++)
        printf("%d%c", out[i], i % 32 == 31 ? '\n' : ' ');
    cudaFree(out);
}
