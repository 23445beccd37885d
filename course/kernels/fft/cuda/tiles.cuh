// What one block does in one pass over memory: whole rows, or some columns, of a matrix.
// SIGN is -1 for the transform and 1 for its inverse, which divides by the length.
#pragma once
#include "stockham.cuh"

// What is read once and written once. Hints (__ldcs, __stcs: "this will not be needed again") can
// be tried in their place.
template <typename T>
__device__ inline T load(const T* from) {
    return *from;
}
template <typename T>
__device__ inline void store(T* to, T value) {
    *to = value;
}
#ifndef LOAD
#define LOAD load
#endif
#ifndef STORE
#define STORE store
#endif

template <int N, int SIGN>
__device__ inline float2 scaled(float2 a) {
    return SIGN > 0 ? (1.0f / N) * a : a;
}

// ROWS rows of N points each, from row `first` on, if they are below `rows`.
template <int N, int R, int ROWS, int SIGN>
__device__ inline void rows_tile(const float2* in, float2* out, float2* room, long long first,
                                 long long rows) {
    constexpr int T = N / R;
    const int t = threadIdx.x % T, local = threadIdx.x / T;
    const bool mine = first + local < rows;
    in += (first + local) * N + t;
    out += (first + local) * N + t;
    float2 v[R] = {};
    if (mine) {
#pragma unroll
        for (int s = 0; s < R; s++)
            v[s] = LOAD(&in[s * T]);
    }
    constexpr bool ONE_WARP = 32 % T == 0;
    transform<N, R, SIGN, 1, ONE_WARP>(v, room + local * padded<R>(N), t);
    if (mine) {
#pragma unroll
        for (int s = 0; s < R; s++)
            STORE(&out[s * T], scaled<N, SIGN>(v[s]));
    }
}

// C columns of a matrix of N rows and M columns, from column `first` on, in place or not.
// LONG: then each point is turned as the first half of a transform of N * M points needs it.
template <int N, int M, int R, int C, int SIGN, bool LONG>
__device__ inline void columns_tile(const float2* in, float2* out, float2* room, int first) {
    constexpr int T = N / R;
    const int c = threadIdx.x % C, t = threadIdx.x / C;
    const int column = first + c;
    in += t * M + column;
    out += t * M + column;
    float2 v[R];
#pragma unroll
    for (int s = 0; s < R; s++)
        v[s] = LONG ? LOAD(&in[s * T * M]) : __ldcg(&in[s * T * M]);
    transform<N, R, SIGN, C>(v, room + c, t);
    if constexpr (LONG) {
        const float turn = SIGN / static_cast<float>(N * M);
        const float2 step = unit_root(turn * (T * column));
        float2 power[R];
        power[0] = unit_root(turn * (t * column));
#pragma unroll
        for (int s = 0; s < R; s++) {
            if (s > 0)
                power[s] = power[s - 1] * step;
            v[s] = v[s] * power[s];
        }
    }
#pragma unroll
    for (int s = 0; s < R; s++) {
        if (LONG)
            __stcg(&out[s * T * M], scaled<N, SIGN>(v[s]));
        else
            STORE(&out[s * T * M], scaled<N, SIGN>(v[s]));
    }
}

// C rows of a matrix of M rows and N columns, from row `first` on; what was a row becomes a column
// of `out`. After the first exchange a thread has points of another row: then neighbours in a warp
// write neighbours in memory.
template <int N, int M, int R, int C, int SIGN>
__device__ inline void turning_tile(const float2* in, float2* out, float2* room, int first) {
    constexpr int T = N / R, GAP = padded<R>(N) + 1;  // odd: C rows, C banks
    float2 v[R];
    {
        const int t = threadIdx.x % T, c = threadIdx.x / T;
        in += (first + c) * N + t;
#pragma unroll
        for (int s = 0; s < R; s++)
            v[s] = __ldcg(&in[s * T]);
        butterflies<N, R, SIGN, 1>(v);
        scatter<N, R, 1, 1>(v, room + c * GAP, t);
    }
    __syncthreads();
    const int c = threadIdx.x % C, t = threadIdx.x / C;
    gather<N, R, 1>(v, room + c * GAP, t);
    __syncthreads();
    transform<N, R, SIGN, 1, false, R>(v, room + c * GAP, t);
    out += t * M + first + c;
#pragma unroll
    for (int s = 0; s < R; s++)
        STORE(&out[s * T * M], scaled<N, SIGN>(v[s]));
}
