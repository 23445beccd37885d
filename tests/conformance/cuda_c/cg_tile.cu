// Cooperative groups: tiles of 32, 8 and 4 threads with shuffles, votes and matches.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

template <int N>
__device__ int tile_sum(cg::thread_block_tile<N> tile, int value) {
    for (int k = tile.size() / 2; k > 0; k /= 2)
        value += tile.shfl_down(value, k);
    return tile.shfl(value, 0);
}

__global__ void work(int* out) {
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto eight = cg::tiled_partition<8>(warp);
    cg::thread_block_tile<4> four = cg::tiled_partition<4>(block);
    int t = block.thread_rank();
    out[t] = tile_sum<32>(warp, 1) + 100 * tile_sum<8>(eight, t) + 1000000 * tile_sum<4>(four, 1);
    out[64 + t] = warp.meta_group_rank() + 10 * warp.meta_group_size() + 100 * eight.thread_rank() +
                  1000 * eight.meta_group_rank();
    unsigned votes = eight.ballot(t % 3 == 0);
    bool any = eight.any(t == 9), all = four.all(t < 60);
    out[128 + t] = votes + 1000 * any + 2000 * all + 10000 * four.shfl_up(t, 1) +
                   1000000 * four.shfl_xor(t, 3);
    out[192 + t] = eight.match_any(t / 3);
    four.sync();
}

int main() {
    int* out;
    cudaMallocManaged(&out, 256 * sizeof(int));
    work<<<1, 64>>>(out);
    cudaDeviceSynchronize();
    for (int row = 0; row < 4; row++)
        for (int i = 0; i < 64; i += 7)
            printf("%d%c", out[row * 64 + i], i == 63 ? '\n' : ' ');
    cudaFree(out);
}
