// nvcc -arch=sm_90 -cubin decode_cluster.cu
// Decoding for groups of heads, for few sequences. As decode_ring.cu, but the blocks that share a
// sequence are a cluster: they join their parts through each other's shared memory, where otherwise
// each would write its part to global memory, be counted, and the last one read them all.
// Grid: (CLUSTER * blocks of 8 queries, heads of keys, batch), block: THREADS, dynamic shared
// memory: STAGES tiles for each warp. known: the length of every sequence, or 0 where they differ.
// What the launch says is there at once; what lies in memory is not.
#include "decode_tiles.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "clusters of blocks need compute capability 9.0 (Hopper)"
#endif

#ifndef CLUSTER
#define CLUSTER 8  // blocks: the most that every GPU with clusters can run
#endif

// What a block found among all of its keys, for the other blocks to read.
struct Share {
    float most[QUERIES], sum[QUERIES];
    alignas(16) float result[QUERIES][DIM];
};

// What the warps found, as one: a thread has 4 neighbouring columns.
__device__ void join_warps(Share& share, const Found<QUERIES>& found, int count) {
    constexpr int FOURS = DIM / 4;
    for (int i = threadIdx.x; i < count * FOURS; i += THREADS) {
        int query = i / FOURS;
        int x = i % FOURS * 4;
        float most = -INFINITY, sum = 0;
        float4 result = {};
#pragma unroll
        for (int w = 0; w < WARPS; ++w)
            most = fmaxf(most, found.most[w][query]);
#pragma unroll 4
        for (int w = 0; w < WARPS; ++w) {
            float weight = weight_of(found.most[w][query], most);
            float4 theirs = *(const float4*)&found.result[w][query][x];
            sum += weight * found.sum[w][query];
            result.x += weight * theirs.x;
            result.y += weight * theirs.y;
            result.z += weight * theirs.z;
            result.w += weight * theirs.w;
        }
        *(float4*)&share.result[query][x] = result;
        if (x == 0) {
            share.most[query] = most;
            share.sum[query] = sum;
        }
    }
}

// A number of another block of the cluster, that lies there as `own` lies here.
__device__ float from_block(const float& own, int rank) {
    float value;
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %1, %2; "
        "ld.shared::cluster.f32 %0, [there]; }"
        : "=f"(value)
        : "r"(shared_address(&own)), "r"(rank)
        : "memory");
    return value;
}
__device__ void meet_cluster() {
    asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}

// The result of all blocks: each of them finishes an equal share of the columns.
__device__ void join_blocks(const Share& share, number* out, float* lse, int row, int count,
                            int rank) {
    int each = count * DIM / CLUSTER;
    for (int i = rank * each + threadIdx.x; i < (rank + 1) * each; i += THREADS) {
        int query = i / DIM;
        int x = i % DIM;
        float mosts[CLUSTER], sums[CLUSTER], results[CLUSTER];
#pragma unroll
        for (int b = 0; b < CLUSTER; ++b) {  // all on their way together
            mosts[b] = from_block(share.most[query], b);
            sums[b] = from_block(share.sum[query], b);
            results[b] = from_block(share.result[query][x], b);
        }
        float most = -INFINITY, sum = 0, result = 0;
#pragma unroll
        for (int b = 0; b < CLUSTER; ++b)
            most = fmaxf(most, mosts[b]);
#pragma unroll
        for (int b = 0; b < CLUSTER; ++b) {
            float weight = power_of_two(mosts[b] - most);  // some block has a key
            sum += weight * sums[b];
            result += weight * results[b];
        }
        store(out, lse, row + query, x, result, most, sum);
    }
}

__global__ __cluster_dims__(CLUSTER, 1, 1)
    __launch_bounds__(THREADS) void attention(number* out, float* lse, const number* q,
                                              const number* k, const number* v, const int* lengths,
                                              const int* table, Decode d, Strides of_k,
                                              Strides of_v, int known) {
    __shared__ Found<QUERIES> found;
    __shared__ Share share;
    extern __shared__ __align__(128) unsigned char raw[];
    Tile* tiles = (Tile*)raw + threadIdx.x / 32 * STAGES;
    int rank = blockIdx.x % CLUSTER;
    int query = blockIdx.x / CLUSTER * QUERIES;  // the block's first of the group
    int key_head = blockIdx.y;
    int batch = blockIdx.z;
    int length = known ? known : lengths[batch];
    int chunk = (length + CLUSTER * KEYS - 1) / (CLUSTER * KEYS) * KEYS;
    int first = min(rank * chunk, length);
    int end = min(first + chunk, length);
    int count = min(d.group - query, QUERIES);
    int row = batch * d.heads + key_head * d.group + query;
    Piece own[K_PIECES] = {};
    load_queries(own, q, row, count);
    Source source = source_of(k, v, table, d, of_k, of_v, batch, key_head);
    attend(found, tiles, source, own, d.scale, first, end);
    __syncthreads();  // every warp has written what it found
    join_warps(share, found, count);
    meet_cluster();
    join_blocks(share, out, lse, row, count, rank);
    meet_cluster();  // nobody leaves whose shared memory is still read
}
