// The trainer's kernels without one of their optimizations, to measure what it brings (race.py, the
// waterfall): included in front of trainer.cu, it puts a plain function in the place of an
// instruction. The results stay the same.
#pragma once
#ifdef NO_TENSOR_CORES
#define multiply_add multiply_add_on_tensor_cores
#endif
#ifdef PLAIN_COPIES
#define copy_eight_async copy_eight_without_registers
#endif
#include "kernels/tensor_core.cuh"

#ifdef NO_TENSOR_CORES
#undef multiply_add
// What another lane holds.
__device__ inline float2 from_lane(pair mine, int lane) {
#ifdef TF32
    float first = __shfl_sync(~0u, mine.x, lane);
    float second = __shfl_sync(~0u, mine.y, lane);
    return make_float2(first, second);
#else
    return unpack(__shfl_sync(~0u, mine, lane));
#endif
}

// c += a b with the ordinary units: the lanes exchange what they hold by shuffles, then each adds
// up its four results.
__device__ inline void multiply_add(float (&c)[4], const pair (&a)[4], pair b0, pair b1) {
    int group = threadIdx.x % 32 / 4;
    int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int k = 0; k < 8; ++k) {  // pairs of the sum over 16
        float2 upper = from_lane(a[k / 4 * 2], group * 4 + k % 4);
        float2 lower = from_lane(a[k / 4 * 2 + 1], group * 4 + k % 4);
        float2 left = from_lane(k < 4 ? b0 : b1, column * 4 + k % 4);
        float2 right = from_lane(k < 4 ? b0 : b1, column * 4 + 4 + k % 4);
        c[0] += upper.x * left.x + upper.y * left.y;
        c[1] += upper.x * right.x + upper.y * right.y;
        c[2] += lower.x * left.x + lower.y * left.y;
        c[3] += lower.x * right.x + lower.y * right.y;
    }
}
#endif

#ifdef PLAIN_COPIES
#undef copy_eight_async
// Through registers: the warp waits for the load before it can store.
__device__ inline void copy_eight_async(number* to_shared, const number* from, bool wanted = true) {
    for (int part = 0; part < int(sizeof(number)) / 2; ++part) {
        uint4* to = reinterpret_cast<uint4*>(to_shared) + part;
        const uint4* source = reinterpret_cast<const uint4*>(from) + part;
        *to = wanted ? *source : make_uint4(0, 0, 0, 0);
    }
}
#endif
