// The sum of an array by clusters (compute capability 9.0 on): 8 blocks on neighbouring SMs read
// one another's shared memory, so that only one in 8 adds to the result.
#include <cooperative_groups.h>
#include "warps.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 && !defined(__CUDA_CPU__)
#error "clusters need compute capability 9.0 (Hopper) or later"
#endif

constexpr int THREADS = 256;
constexpr int CLUSTER = 8;

// The sum over the block, in every thread of warp 0.
__device__ float block_sum(float value) {
    __shared__ float sums[THREADS / WARP];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    value = warp_sum(value);
    if (lane == 0)
        sums[warp] = value;
    __syncthreads();
    return warp_sum(lane < THREADS / WARP ? sums[lane] : 0.0f);
}

// The sum over the cluster's blocks, in thread 0 of its first block.
__device__ float cluster_sum(float value) {
    __shared__ float of_block;
    const auto cluster = cooperative_groups::this_cluster();
    if (threadIdx.x == 0)
        of_block = value;
    cluster.sync();
    float all = 0;
    if (cluster.block_rank() == 0 && threadIdx.x == 0)
        for (int block = 0; block < CLUSTER; block++)
            all += *cluster.map_shared_rank(&of_block, block);  // from that block's SM
    cluster.sync();  // a block's shared memory must last until it has been read
    return all;
}

// in: at a multiple of 16 bytes; *out is 0 before; the grid is a multiple of CLUSTER.
__global__ void __cluster_dims__(CLUSTER) sum_cluster(const float* in, long long n, float* out) {
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

    const float all = cluster_sum(block_sum(sum));
    if (blockIdx.x % CLUSTER == 0 && threadIdx.x == 0)
        atomicAdd(out, all);
}
