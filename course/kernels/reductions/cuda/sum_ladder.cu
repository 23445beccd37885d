// The sum of an array, one change at a time. Blocks have THREADS threads.
//
// 1 and 6 add to *out, which is 0 before. 2 to 5 write a sum for each block; launched again on
// these sums, and so on, they come down to one.
#include "warps.cuh"

constexpr int THREADS = 256;

// ---- 1: everybody adds to one number -------------------------------------------------------

__global__ void sum_atomic(const float* in, long long n, float* out) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n)
        atomicAdd(out, in[i]);
}

// ---- 2: a tree in shared memory, its threads far apart -------------------------------------

__global__ void sum_divergent(const float* in, long long n, float* sums) {
    __shared__ float tree[THREADS];
    const int t = threadIdx.x;
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + t;
    tree[t] = i < n ? in[i] : 0;
    for (int step = 1; step < THREADS; step *= 2) {
        __syncthreads();
        if (t % (2 * step) == 0)  // every warp has some who work and some who wait
            tree[t] += tree[t + step];
    }
    if (t == 0)
        sums[blockIdx.x] = tree[0];
}

// ---- 3: neighbours work on neighbouring places ---------------------------------------------

__global__ void sum_sequential(const float* in, long long n, float* sums) {
    __shared__ float tree[THREADS];
    const int t = threadIdx.x;
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + t;
    tree[t] = i < n ? in[i] : 0;
    for (int step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (t < step)
            tree[t] += tree[t + step];
    }
    if (t == 0)
        sums[blockIdx.x] = tree[0];
}

// ---- 4: neighbours work, on places far apart -----------------------------------------------

__global__ void sum_conflicts(const float* in, long long n, float* sums) {
    __shared__ float tree[THREADS];
    const int t = threadIdx.x;
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + t;
    tree[t] = i < n ? in[i] : 0;
    for (int step = 1; step < THREADS; step *= 2) {
        __syncthreads();
        const int place = 2 * step * t;  // lanes of a warp meet in the same banks
        if (place < THREADS)
            tree[place] += tree[place + step];
    }
    if (t == 0)
        sums[blockIdx.x] = tree[0];
}

// ---- 5: warps need no shared memory --------------------------------------------------------

// The sum over the block, in thread 0.
__device__ float block_sum(float value) {
    __shared__ float sums[THREADS / WARP];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    value = warp_sum(value);
    if (lane == 0)
        sums[warp] = value;
    __syncthreads();
    value = lane < THREADS / WARP ? sums[lane] : 0;
    return warp_sum(value);
}

__global__ void sum_shuffle(const float* in, long long n, float* sums) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    const float sum = block_sum(i < n ? in[i] : 0);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

// ---- 6: several elements a thread, 16 bytes at a time --------------------------------------

// The sum of this thread's share of the array. in: at a multiple of 16 bytes.
__device__ float sum_of_share(const float* in, long long n) {
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
    return rest < n ? sum + in[rest] : sum;
}

__global__ void sum_wide(const float* in, long long n, float* out) {
    const float sum = block_sum(sum_of_share(in, n));
    if (threadIdx.x == 0)
        atomicAdd(out, sum);
}

// ---- 7: no atomics: the order is fixed, and so are the bits --------------------------------

// Launched twice: n elements to gridDim.x partial sums, then these, by one block, to one.
__global__ void sum_pass(const float* in, long long n, float* out) {
    const float sum = block_sum(sum_of_share(in, n));
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

// ---- 8: as fixed, in one launch: the block that ends last adds up the rest -----------------

// partial: gridDim.x floats. arrived: 0 before, and again afterwards.
__global__ void sum_last_block(const float* in, long long n, float* out, float* partial,
                               unsigned* arrived) {
    __shared__ bool last;
    const float sum = block_sum(sum_of_share(in, n));
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();  // whoever sees that this block has arrived sees its sum too
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    float all = 0;
    for (int b = threadIdx.x; b < gridDim.x; b += THREADS)
        all += __ldcg(&partial[b]);  // other SMs wrote them: from the L2
    all = block_sum(all);
    if (threadIdx.x == 0) {
        *out = all;
        *arrived = 0;
    }
}
