// The sum of an array by clusters (compute capability 9.0 on): 8 blocks on neighbouring SMs read
// one another's shared memory, so that only one in 8 adds to the result.
#include <cooperative_groups.h>
#include "warps.cuh"

constexpr int THREADS = 256;
constexpr int CLUSTER = 8;

// in: at a multiple of 16 bytes; *out is 0 before; the grid is a multiple of CLUSTER.
__global__ void __cluster_dims__(CLUSTER) sum_cluster(const float* in, long long n, float* out) {
    __shared__ float sums[THREADS / WARP];
    __shared__ float of_block;
    const auto cluster = cooperative_groups::this_cluster();
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;

    const float4* fours = reinterpret_cast<const float4*>(in);
    const long long threads = static_cast<long long>(gridDim.x) * THREADS;
    const long long me = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    float sum = 0;
#pragma unroll 4
    for (long long i = me; i < n / 4; i += threads) {
        const float4 four = fours[i];
        sum += (four.x + four.y) + (four.z + four.w);
    }
    const long long rest = n / 4 * 4 + me;
    if (rest < n)
        sum += in[rest];

    sum = warp_sum(sum);
    if (lane == 0)
        sums[warp] = sum;
    __syncthreads();
    sum = warp_sum(lane < THREADS / WARP ? sums[lane] : 0.0f);
    if (threadIdx.x == 0)
        of_block = sum;

    cluster.sync();
    if (cluster.block_rank() == 0 && warp == 0) {
        const float* theirs = lane < CLUSTER ? cluster.map_shared_rank(&of_block, lane) : nullptr;
        const float all = warp_sum(theirs ? *theirs : 0.0f);
        if (lane == 0)
            atomicAdd(out, all);
    }
    cluster.sync();  // a block's shared memory must last until it has been read
}
