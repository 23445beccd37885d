// Sizes as macros, for a search: the fastest depend on the GPU.
#include "tiles.cuh"

__global__ __launch_bounds__(THREADS, BLOCKS) void matmul(float* c, const float* a, const float* b,
                                                          int m, int n, int k) {
    Matrices in{a, b, m, n, k};
    int row = blockIdx.y * BM, col = blockIdx.x * BN;
    Work work{row, col, 0, k, is_whole(in, c, row, col)};
    float sum[TM][TN] = {};
    multiply_tiles(sum, in, work);
    store_tile(c, sum, in, work);
}
