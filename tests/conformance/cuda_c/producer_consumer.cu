// Warps of one block with different work: one produces, the others consume, in rounds with
// barriers; warps that end early.
#include <cstdio>

__global__ void pipeline(int* out, int rounds) {
    __shared__ int buffer[2][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sum = 0;
    if (warp == 0)
        buffer[0][lane] = lane;
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        if (warp == 0)
            buffer[(r + 1) % 2][lane] = (r + 1) * 100 + lane;
        else
            sum += __shfl_xor_sync(0xffffffff, buffer[r % 2][lane], warp);
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

__global__ void some_warps(int* out) {
    if (threadIdx.x / 32 == 1)
        return;  // a whole warp leaves
    __syncthreads();
    out[threadIdx.x] = __reduce_add_sync(0xffffffff, 1) + __popc(__activemask());
}

int main() {
    int* out;
    cudaMallocManaged(&out, 128 * sizeof(int));
    pipeline<<<1, 128>>>(out, 5);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[32], out[64 + 5], out[127]);
    for (int i = 0; i < 128; i++)
        out[i] = 0;
    some_warps<<<1, 128>>>(out);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[32], out[64], out[127]);
    cudaFree(out);
}
