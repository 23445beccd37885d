// Blocks that run at the same time share more of A and B in the L2 cache when their tiles form a
// compact patch of C: GROUP rows of tiles are taken together, column by column.
#include "tiles.cuh"
#ifndef GROUP
#define GROUP 8
#endif

__global__ __launch_bounds__(THREADS, BLOCKS) void matmul(float* c, const float* a, const float* b,
                                                          int m, int n, int k) {
    Matrices in{a, b, m, n, k};
    int tiles_y = (m + BM - 1) / BM, tiles_x = (n + BN - 1) / BN;
    int first = blockIdx.x / (GROUP * tiles_x) * GROUP;  // row of tiles with which the group begins
    int within = blockIdx.x % (GROUP * tiles_x);
    int height = min(GROUP, tiles_y - first);  // the last group may be lower
    int row = (first + within % height) * BM, col = within / height * BN;
    Work work{row, col, 0, k, is_whole(in, c, row, col)};
    float sum[TM][TN] = {};
    multiply_tiles(sum, in, work);
    store_tile(c, sum, in, work);
}
