// Cooperative groups: the thread block and the free functions over a group.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

__device__ int sum(cg::thread_group g, int* box, int value) {
    int rank = g.thread_rank();
    for (int k = g.size() / 2; k > 0; k /= 2) {
        box[rank] = value;
        g.sync();
        if (rank < k)
            value += box[rank + k];
        g.sync();
    }
    return value;
}

__global__ void work(int* out) {
    __shared__ int box[32];
    cg::thread_block block = cg::this_thread_block();
    int total = sum(block, box, block.thread_rank() + 1);
    cg::sync(block);
    dim3 where = block.group_index(), who = block.thread_index();
    if (block.thread_rank() == 31) {
        out[1] = block.size() + 100 * block.num_threads() + 10000 * where.x;
        out[2] =
            who.x + 100 * who.y + 10000 * block.group_dim().x + 1000000 * block.dim_threads().y;
    }
    if (block.thread_rank() == 0)
        out[0] = total;
}

int main() {
    int* out;
    cudaMallocManaged(&out, 3 * sizeof(int));
    work<<<1, dim3(8, 4)>>>(out);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", out[0], out[1], out[2]);
    cudaFree(out);
}
