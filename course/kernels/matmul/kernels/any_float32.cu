// C = A B at any size in float32, without tensor cores: the ladder's tiles (tiles.cuh), in any size
// of them, for a batch of matrices. Blocks stay and take tile after tile, as those of any.cu; sums
// of tiles that are cut along k meet in the order of their parts, so the result is the same in
// every run. All blocks must run at the same time.
#include "tiles.cuh"
#include "any_parts.cuh"

// Where blocks leave sums for others: [block][sum][thread], and flags, zero before and after a
// launch.
struct Exchange {
    float* sums;
    int* ready;

    __device__ float* place(int block) const {
        return sums + (size_t)block * TM * TN * THREADS + threadIdx.x;
    }
};

// The fence comes before the flag: whoever sees the flag sees the sums too.
__device__ void hand_over(const float (&sum)[TM][TN], Exchange exchange) {
    float* to = exchange.place(blockIdx.x);
#pragma unroll
    for (int i = 0; i < TM * TN; i++)
        __stcg(to + i * THREADS, sum[i / TN][i % TN]);
    __threadfence();
    __syncthreads();  // all threads have written theirs
    if (threadIdx.x == 0)
        atomicExch(&exchange.ready[blockIdx.x], 1);
}

// Adds another block's sums to this one's, as soon as they are there. Another SM wrote them, so
// __ldcg asks the L2 cache at once.
__device__ void take_over(float (&sum)[TM][TN], Exchange exchange, int block) {
    if (threadIdx.x == 0) {
        while (atomicCAS(&exchange.ready[block], 1, 0) == 0) {}
        __threadfence();
    }
    __syncthreads();  // what thread 0 may see now, all may
    const float* from = exchange.place(block);
#pragma unroll
    for (int i = 0; i < TM * TN; i++)
        sum[i / TN][i % TN] += __ldcg(from + i * THREADS);
}

__global__ __launch_bounds__(THREADS, BLOCKS) void matmul(float* c, const float* a, const float* b,
                                                          float* sums, int* ready, int m, int n,
                                                          int k, int batch, int whole) {
    Exchange exchange{sums, ready};
    int down = (m + BM - 1) / BM;
    int tiles = down * ((n + BN - 1) / BN);
    StreamedParts parts(tiles * batch, whole, (k + BK - 1) / BK, gridDim.x, blockIdx.x);
    Part part;
    while (parts.next(part)) {
        size_t matrix = part.tile / tiles;
        int tile = part.tile % tiles;
        Matrices in{a + matrix * m * k, b + matrix * k * n, m, n, k};
        float* to = c + matrix * m * n;
        int row = tile % down * BM, col = tile / down * BN;
        Work work{row, col, part.first * BK, min(k, part.last * BK), is_whole(in, to, row, col)};
        float sum[TM][TN] = {};
        multiply_tiles(sum, in, work);
        if (part.first > 0) {
            hand_over(sum, exchange);
        } else {
            if (part.last < parts.steps)
                parts.each_other(part.tile, blockIdx.x,
                                 [&](int block) { take_over(sum, exchange, block); });
            store_tile(to, sum, in, work);
        }
        __syncthreads();  // nobody reads shared memory any more
    }
}
