// The sum of an array with the copy engine (compute capability 9.0 on): one block on each SM. One
// warp has tiles loaded into a ring in shared memory, the others add up those that have arrived.
// No registers are needed for what is on the way, so a lot may be.
#include "bulk_copy.cuh"
#include "warps.cuh"

// in: n floats at a multiple of 16 bytes. partial: a double for each block. arrived: zero before
// the first launch; each launch leaves it zero. Dynamic shared memory: STAGES tiles.
template <int WARPS, int TILE, int STAGES>
__global__ void __launch_bounds__((WARPS + 1) * 32)
    sum_ring(const float* in, long long n, double* partial, unsigned* arrived, float* out) {
    extern __shared__ __align__(128) float ring[];
    __shared__ Barrier loaded[STAGES], added[STAGES];
    __shared__ double sums[WARPS];
    __shared__ bool last;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(&loaded[stage], 1);
            barrier_init(&added[stage], WARPS);
        }
        shared_memory_to_copy_engine();
    }
    __syncthreads();

    // Whole tiles go through the ring, by turns; what is left is the last block's.
    const long long all = n / TILE;
    const int tiles = static_cast<int>((all - blockIdx.x + gridDim.x - 1) / gridDim.x);
    if (warp == WARPS && lane == 0) {
        const unsigned long long policy = used_once();
        for (int k = 0; k < tiles; k++) {
            const int stage = k % STAGES;
            if (k >= STAGES)
                wait_for(&added[stage], k / STAGES - 1);
            arrive_and_expect(&loaded[stage], TILE * sizeof(float));
            const long long tile = blockIdx.x + static_cast<long long>(k) * gridDim.x;
            bulk_load(ring + stage * TILE, in + tile * TILE, TILE * sizeof(float), &loaded[stage],
                      policy);
        }
    }
    if (warp < WARPS) {
        double sum = 0;
        for (int k = 0; k < tiles; k++) {
            const int stage = k % STAGES;
            wait_for(&loaded[stage], k / STAGES);
            const float4* fours = reinterpret_cast<const float4*>(ring + stage * TILE);
            float of_tile = 0;
#pragma unroll
            for (int i = 0; i < TILE / 4 / (WARPS * WARP); i++) {
                const float4 four = fours[i * WARPS * WARP + threadIdx.x];
                of_tile += (four.x + four.y) + (four.z + four.w);
            }
            __syncwarp();
            if (lane == 0)
                arrive(&added[stage]);
            sum += of_tile;
        }
        if (blockIdx.x == gridDim.x - 1)
            for (long long i = all * TILE + threadIdx.x; i < n; i += WARPS * WARP)
                sum += in[i];
        sum = warp_sum(sum);
        if (lane == 0)
            sums[warp] = sum;
    }
    __syncthreads();

    if (threadIdx.x == 0) {
        double sum = 0;
        for (int w = 0; w < WARPS; w++)
            sum += sums[w];
        partial[blockIdx.x] = sum;
        __threadfence();  // whoever sees that this block has arrived sees its sum too
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || warp > 0)
        return;
    __threadfence();
    double sum = 0;
    for (int b = lane; b < gridDim.x; b += WARP)
        sum += __ldcg(&partial[b]);
    sum = warp_sum(sum);
    if (lane == 0) {
        *out = static_cast<float>(sum);
        *arrived = 0;
    }
}
