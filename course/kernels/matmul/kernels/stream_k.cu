// As many blocks as the GPU has room for, each with the same share of all steps of all tiles: no SM
// waits for a last round. A share that begins within a tile hands its sums over to the block that
// began the tile, which is the one before. All blocks must run at the same time.
#include "tiles.cuh"
constexpr int MAX_BLOCKS = 256 * BLOCKS;  // gridDim.x may not be larger
__device__ float handed_over[MAX_BLOCKS][TM * TN][THREADS];
__device__ int ready[MAX_BLOCKS];  // zero before and after a launch

// Puts this block's sums where another finds them. The fence comes before the flag: whoever sees
// the flag sees the sums too.
__device__ void hand_over(const float (&sum)[TM][TN]) {
#pragma unroll
    for (int i = 0; i < TM * TN; i++)
        handed_over[blockIdx.x][i][threadIdx.x] = sum[i / TN][i % TN];
    __syncthreads();  // all threads have written theirs
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(&ready[blockIdx.x], 1);
    }
}

// Adds another block's sums to this one's, as soon as they are there. Another SM wrote them, so
// __ldcg asks the L2 cache at once.
__device__ void take_over(float (&sum)[TM][TN], int block) {
    if (threadIdx.x == 0) {
        while (atomicCAS(&ready[block], 1, 0) == 0) {}
        __threadfence();
    }
    __syncthreads();  // what thread 0 may see now, all may
#pragma unroll
    for (int i = 0; i < TM * TN; i++)
        sum[i / TN][i % TN] += __ldcg(&handed_over[block][i][threadIdx.x]);
}

__global__ __launch_bounds__(THREADS, BLOCKS) void matmul(float* c, const float* a, const float* b,
                                                          int m, int n, int k) {
    Matrices in{a, b, m, n, k};
    int tiles_y = (m + BM - 1) / BM, tiles_x = (n + BN - 1) / BN, steps = (k + BK - 1) / BK;
    long long all = (long long)tiles_y * tiles_x * steps;
    auto begin_of = [&](int block) { return all * block / (int)gridDim.x; };
    long long at = begin_of(blockIdx.x), end = begin_of(blockIdx.x + 1);
    while (at < end) {
        int tile = at / steps, first = at % steps, last = min((long long)steps, first + end - at);
        int row = tile % tiles_y * BM, col = tile / tiles_y * BN;
        Work work{row, col, first * BK, min(k, last * BK), is_whole(in, c, row, col)};
        float sum[TM][TN] = {};
        multiply_tiles(sum, in, work);
        if (first > 0) {
            hand_over(sum);
        } else {
            long long tile_end = (tile + 1ll) * steps;
            for (int i = blockIdx.x + 1; i < gridDim.x && begin_of(i) < tile_end; i++)
                if (begin_of(i) < begin_of(i + 1))
                    take_over(sum, i);
            store_tile(c, sum, in, work);
        }
        at += last - first;
        __syncthreads();  // nobody reads shared memory any more
    }
}
