// The sum of an array at the speed of memory: one launch, every block adds up its share, the block
// that ends last adds up the blocks' sums.
//
// What makes it fast: each thread asks for LOADS times 16 bytes before it adds the first of them,
// so that enough is under way to keep memory busy; and there is no second kernel to start.
//
// The order of every addition is fixed by the grid: the same input gives the same bits each time.
#include "warps.cuh"

// The sum over the block, in every thread of warp 0.
template <int THREADS, typename S>
__device__ inline S block_sum(S value) {
    __shared__ S sums[THREADS / WARP];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    value = warp_sum(value);
    if (lane == 0)
        sums[warp] = value;
    __syncthreads();
    value = lane < THREADS / WARP ? sums[lane] : S(0);
    __syncthreads();  // before anyone uses `sums` again
    return warp_sum(value);
}

// The last block adds up what all blocks have left in `partial`, and makes `arrived` zero again.
template <int THREADS>
__device__ inline void add_up_blocks(double mine, double* partial, unsigned* arrived, float* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = mine;
        __threadfence();  // whoever sees that this block has arrived sees its sum too
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    double sum = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += THREADS)
        sum += __ldcg(&partial[b]);
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0) {
        *out = static_cast<float>(sum);
        *arrived = 0;
    }
}

// in: n floats at an address that is a multiple of 16. partial: a double for each block.
// arrived: zero before the first launch; each launch leaves it zero.
template <int THREADS, int LOADS>
__global__ void __launch_bounds__(THREADS)
    sum_fast(const float* in, long long n, double* partial, unsigned* arrived, float* out) {
    const float4* fours = reinterpret_cast<const float4*>(in);
    constexpr int CHUNK = THREADS * LOADS;  // fours that a block takes at once
    const long long count = n / 4, chunks = (count + CHUNK - 1) / CHUNK;

    float sum[LOADS] = {};
    for (long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const long long first = chunk * CHUNK + threadIdx.x;
        float4 four[LOADS];
        if ((chunk + 1) * CHUNK <= count) {
#pragma unroll
            for (int i = 0; i < LOADS; i++)
                four[i] = fours[first + i * THREADS];
        } else {
#pragma unroll
            for (int i = 0; i < LOADS; i++)
                four[i] = first + i * THREADS < count ? fours[first + i * THREADS] : float4{};
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            sum[i] += (four[i].x + four[i].y) + (four[i].z + four[i].w);
    }

    double mine = 0;
#pragma unroll
    for (int i = 0; i < LOADS; i++)
        mine += sum[i];
    const long long rest = count * 4 + threadIdx.x;  // at most three elements
    if (blockIdx.x == 0 && rest < n)
        mine += in[rest];
    add_up_blocks<THREADS>(block_sum<THREADS>(mine), partial, arrived, out);
}
