// Matches: which lanes hold my value, and whether all hold the same.
#include <cstdio>

__global__ void work(unsigned* out, int* same) {
    int lane = threadIdx.x;
    const unsigned all = 0xffffffff;
    out[lane] = __match_any_sync(all, lane / 5);
    unsigned long long wide = (unsigned long long)(lane % 2) << 40;
    out[32 + lane] = __match_any_sync(all, wide);
    int agree, differ;
    unsigned mask = __match_all_sync(all, 7.5f, &agree);
    unsigned none = __match_all_sync(all, lane < 31, &differ);
    if (lane == 0)
        same[0] = agree, same[1] = differ, out[64] = mask, out[65] = none;
}

int main() {
    unsigned* out;
    int* same;
    cudaMallocManaged(&out, 66 * sizeof(unsigned));
    cudaMallocManaged(&same, 2 * sizeof(int));
    work<<<1, 32>>>(out, same);
    cudaDeviceSynchronize();
    for (int i : {0, 4, 5, 24, 31, 32, 33, 64, 65})
        printf("%08x ", out[i]);
    printf("\n%d %d\n", same[0], same[1]);
    cudaFree(out);
    cudaFree(same);
}
