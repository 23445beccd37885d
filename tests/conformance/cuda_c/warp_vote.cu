// Votes: any, all, ballot, for whole warps and for masks; several warps in one block.
#include <cstdio>

__global__ void work(unsigned* out) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned all = 0xffffffff;
    unsigned odd = __ballot_sync(all, lane & 1);
    int any = __any_sync(all, lane == 40 - warp * 20), every = __all_sync(all, lane < 32 - warp);
    unsigned low = 0;
    if (lane < 8)
        low = __ballot_sync(0xff, lane % 3 == warp);
    if (lane == 5) {
        out[warp * 4] = odd;
        out[warp * 4 + 1] = any;
        out[warp * 4 + 2] = every;
        out[warp * 4 + 3] = low;
    }
}

int main() {
    unsigned* out;
    cudaMallocManaged(&out, 8 * sizeof(unsigned));
    work<<<1, 64>>>(out);
    cudaDeviceSynchronize();
    for (int w = 0; w < 2; w++)
        printf("%08x %u %u %02x\n", out[w * 4], out[w * 4 + 1], out[w * 4 + 2], out[w * 4 + 3]);
    cudaFree(out);
}
