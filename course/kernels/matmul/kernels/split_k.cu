// Few tiles of C cannot fill the GPU: gridDim.z blocks share a tile, each takes a part of k and
// adds its sums to C, which must be zero before the launch. The order of the additions, so the
// last bits, may differ from run to run.
#include "tiles.cuh"

__global__ __launch_bounds__(THREADS, BLOCKS) void matmul(float* c, const float* a, const float* b,
                                                          int m, int n, int k) {
    Matrices in{a, b, m, n, k};
    int row = blockIdx.y * BM, col = blockIdx.x * BN;
    int tiles = (k + BK - 1) / BK;  // along k
    int part = (tiles + gridDim.z - 1) / gridDim.z * BK;  // whole tiles
    int k_begin = min(k, (int)blockIdx.z * part);
    int k_end = min(k, k_begin + part);
    Work work{row, col, k_begin, k_end, is_whole(in, c, row, col)};
    float sum[TM][TN] = {};
    multiply_tiles(sum, in, work);
    for_each_four(sum, in, work, [&](size_t where, const float* four, int count) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < count)
                atomicAdd(c + where + i, four[i]);
    });
}
