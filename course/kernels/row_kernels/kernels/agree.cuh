// How the lanes of a warp agree on a sum or a maximum: all of them, or those that share a row.
//
// GROUP, a macro, is how many threads share a row.
#pragma once
#include "operators.cuh"

constexpr int row_lanes = GROUP < 32 ? GROUP : 32;  // lanes of a warp that have the same row

template <typename Op>
__device__ inline float combine(float a, float b) {
    return Op::combine(a, b);
}

template <typename Op>
__device__ inline float2 combine(float2 a, float2 b) {
    return make_float2(Op::combine(a.x, b.x), Op::combine(a.y, b.y));
}

__device__ inline float shuffle(float v, int lanes) {
    return __shfl_xor_sync(~0u, v, lanes);
}

__device__ inline float2 shuffle(float2 v, int lanes) {
    return make_float2(shuffle(v.x, lanes), shuffle(v.y, lanes));
}

__device__ inline void set(float& v, float to) {
    v = to;
}

__device__ inline void set(float2& v, float to) {
    v = make_float2(to, to);
}

// Combine one value of each of `among` neighbouring lanes: each of them gets the result.
template <typename Op, int among = row_lanes, typename Value>
__device__ inline Value warp_reduce(Value v) {
#pragma unroll
    for (int lanes = among / 2; lanes > 0; lanes /= 2)
        v = combine<Op>(v, shuffle(v, lanes));
    return v;
}
