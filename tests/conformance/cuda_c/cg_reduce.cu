// Cooperative groups: reduce and scans over a tile, invoke_one, binary and labelled partitions.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cstdio>
namespace cg = cooperative_groups;

__global__ void work(int* out, float* f) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    int t = block.thread_rank();
    int sum = cg::reduce(tile, t, cg::plus<int>()),
        low = cg::reduce(tile, 100 - t, cg::less<int>());
    int high = cg::reduce(tile, t * 3 % 16, cg::greater<int>()),
        bits = cg::reduce(tile, 1 << (t % 16), cg::bit_or<int>());
    float product = cg::reduce(tile, tile.thread_rank() < 5 ? 2.0f : 1.0f,
                               [](float a, float b) { return a * b; });
    int before = cg::exclusive_scan(tile, t), upto = cg::inclusive_scan(tile, 1, cg::plus<int>());
    auto part = cg::binary_partition(tile, t % 3 == 0);
    if (t == 20) {
        out[0] = sum, out[1] = low, out[2] = high, out[3] = bits, out[4] = before, out[5] = upto;
        f[0] = product;
    }
    if (t == 21)
        out[6] = part.size(), out[7] = part.thread_rank();
}

int main() {
    int* out;
    float* f;
    cudaMallocManaged(&out, 8 * sizeof(int));
    cudaMallocManaged(&f, sizeof(float));
    work<<<1, 32>>>(out, f);
    cudaDeviceSynchronize();
    for (int i = 0; i < 8; i++)
        printf("%d ", out[i]);
    printf("%g\n", *f);
    cudaFree(out);
    cudaFree(f);
}
