// One value of each thread of a block becomes one for all: in warps by shuffles, then across warps
// through shared memory. The block has whole warps, 32 at most.
#pragma once
#include "operators.cuh"

template <typename Op>
__device__ inline float warp_reduce(float v) {
    for (int lanes = 16; lanes > 0; lanes /= 2)
        v = Op::combine(v, __shfl_xor_sync(~0u, v, lanes));
    return v;
}

// All threads of the block call it and get the result.
template <typename Op>
__device__ inline float block_reduce(float v) {
    __shared__ float results[32];
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    v = warp_reduce<Op>(v);
    if (lane == 0)
        results[warp] = v;
    __syncthreads();
    v = lane < blockDim.x / 32 ? results[lane] : Op::neutral();
    v = warp_reduce<Op>(v);
    __syncthreads();  // the next call may write `results` again
    return v;
}
