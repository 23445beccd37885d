// Cooperative groups: labelled partitions, one thread of a group, work shared between groups, ranks
// in several dimensions.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
namespace cg = cooperative_groups;

__global__ void work(int* out, int* rows) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int t = block.thread_rank();
    auto group = cg::labeled_partition(warp, t % 3);
    int sum = cg::reduce(group, t, cg::plus<int>());
    out[t] = sum * 100 + group.size() * 10 + (group.thread_rank() == 0);
    int total = 0;
    cg::invoke_one(block, [&] { atomicAdd(&rows[0], 1); });
    for (int i = warp.meta_group_rank(); i < 5; i += warp.meta_group_size())
        total += cg::reduce(warp, i + 1, cg::plus<int>());
    if (warp.thread_rank() == 0)
        rows[1 + warp.meta_group_rank()] = total;
    block.sync();
    dim3 index = block.thread_index();
    if (index.x == 3 && index.y == 2)
        rows[3] = t + 1000 * block.dim_threads().x;
}

int main() {
    int *out, *rows;
    cudaMallocManaged(&out, 64 * sizeof(int));
    cudaMallocManaged(&rows, 4 * sizeof(int));
    for (int i = 0; i < 4; i++)
        rows[i] = 0;
    work<<<1, dim3(16, 4)>>>(out, rows);
    cudaDeviceSynchronize();
    printf("%d %d %d %d %d %d\n", out[0], out[1], out[2], out[3], out[32], out[63]);
    printf("%d %d %d %d\n", rows[0], rows[1], rows[2], rows[3]);
    cudaFree(out);
    cudaFree(rows);
}
