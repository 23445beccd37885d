// Divergent warps: each branch works with its own mask; __syncwarp orders shared memory; a
// part-filled last warp.
#include <cstdio>

__global__ void work(int* out) {
    __shared__ int box[64];
    int t = threadIdx.x, lane = t % 32;
    unsigned even = __ballot_sync(__activemask(), lane % 2 == 0);
    int value;
    if (lane % 2 == 0) {
        value = __shfl_sync(0x55555555 & even, t, 4);
    } else {
        value = __shfl_xor_sync(0xaaaaaaaa & ((t < 32 ? ~0u : 0xffffu)), t, 2);
    }
    __syncwarp(t < 32 ? ~0u : 0xffffu);
    box[t] = value;
    __syncwarp(t < 32 ? ~0u : 0xffffu);
    out[t] = box[t ^ 1] + 1000 * __popc(even);
}

int main() {
    int* out;
    cudaMallocManaged(&out, 48 * sizeof(int));
    work<<<1, 48>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 48; i++)
        printf("%d%c", out[i], i % 16 == 15 ? '\n' : ' ');
    cudaFree(out);
}
