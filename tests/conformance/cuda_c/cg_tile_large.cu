// Cooperative groups: tiles of several warps, which meet and exchange values by themselves.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
namespace cg = cooperative_groups;

template <unsigned size>
__global__ void tiles(int* out) {
    __shared__ cg::block_tile_memory<512> memory;
    __shared__ int values[512];
    cg::thread_block block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<size>(block);
    auto half_warp = cg::tiled_partition<16>(tile);
    int me = threadIdx.x;
    int sum = cg::reduce(tile, me, cg::plus<int>());
    int most = cg::reduce(tile, me % 7 * 10 + me % 3, cg::greater<int>());
    int any = tile.any(me == 70), all = tile.all(me < 128), third = tile.shfl(me, 3);
    values[me] = me;
    tile.sync();  // of the tile alone: it reads what its own threads have stored
    int first = tile.meta_group_rank() * size;
    int mirrored = values[first + size - 1 - tile.thread_rank()];
    tile.sync();
    if (tile.thread_rank() == 0) {
        int* mine = out + 8 * tile.meta_group_rank();
        int all_of_it[] = {sum,
                           most,
                           any,
                           all,
                           third,
                           mirrored,
                           int(tile.meta_group_size()),
                           int(half_warp.meta_group_size())};
        for (int i = 0; i < 8; i++)
            mine[i] = all_of_it[i];
    }
}

template <unsigned size>
void show() {
    int* out;
    cudaMallocManaged(&out, 64 * sizeof(int));
    tiles<size><<<1, 512>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    for (unsigned i = 0; i < 8 * (512 / size); i++)
        printf("%d%c", out[i], i % 8 == 7 ? '\n' : ' ');
    cudaFree(out);
}
int main() {
    show<64>();
    show<256>();
    show<512>();
}
