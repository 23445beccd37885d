// The Fourier transform of N points by T = N / R threads with R points each, after Stockham.
//
// In each pass every thread transforms RADIX points that stand N / RADIX apart, and the results go
// to where the next pass finds its points the same distance apart. So no pass is in bit-reversed
// order, and thread t has points t, t + T, t + 2 T ... at the start of each pass and at the end.
#pragma once
#include "butterfly.cuh"

// Of the pass before which L points are already transformed among themselves.
template <int N, int R, int L>
__device__ constexpr int radix() {
    return N / L < R ? N / L : R;
}

// A gap after each R points, so that threads that write R points apart use different banks.
template <int R>
__device__ constexpr int padded(int i) {
    return i + i / R;
}

// Everyone whose points are exchanged has come here.
template <bool ONE_WARP>
__device__ inline void meet() {
    if constexpr (ONE_WARP)
        __syncwarp();
    else
        __syncthreads();
}

// A power of a root that is multiplied k times is k times as far off as the root. So powers 1, 4
// and 16 are computed anew, and the others are products of them: this is the one to start from.
__device__ constexpr int anchor(int k) {
    if (k < 4)
        return 1;
    return k < 16 ? 4 : 16;
}

// Turns point k of each butterfly by k times its thread's angle.
template <int N, int R, int SIGN, int L>
__device__ inline void twiddle(float2 (&v)[R], int t) {
    constexpr int RADIX = radix<N, R, L>(), TURNS = R / RADIX;
    const float angle = SIGN * static_cast<float>(t % L) / (L * RADIX);
    float2 power[RADIX];
#pragma unroll
    for (int k = 1; k < RADIX; k++) {
        const int exact = anchor(k);
        power[k] = k == exact ? unit_root(k * angle) : power[exact] * power[k - exact];
#pragma unroll
        for (int m = 0; m < TURNS; m++)  // of threads that would have come m * T later
            v[m + k * TURNS] = v[m + k * TURNS] * turned<R, SIGN>(power[k], m * k % R);
    }
}

// The R / RADIX butterflies of one thread.
template <int N, int R, int SIGN, int L>
__device__ inline void butterflies(float2 (&v)[R]) {
    constexpr int RADIX = radix<N, R, L>(), TURNS = R / RADIX;
#pragma unroll
    for (int m = 0; m < TURNS; m++) {
        float2 mine[RADIX];
#pragma unroll
        for (int k = 0; k < RADIX; k++)
            mine[k] = v[m + k * TURNS];
        butterfly<RADIX, SIGN>(mine);
#pragma unroll
        for (int k = 0; k < RADIX; k++)
            v[m + k * TURNS] = mine[k];
    }
}

// A pass's results into shared memory. STRIDE: how many transforms stand interleaved there.
template <int N, int R, int STRIDE, int L>
__device__ inline void scatter(const float2 (&v)[R], float2* room, int t) {
    constexpr int RADIX = radix<N, R, L>(), TURNS = R / RADIX;
#pragma unroll
    for (int m = 0; m < TURNS; m++) {
        const int j = t + m * (N / R);
        float2* to = room + padded<R>(j / L * L * RADIX + j % L) * STRIDE;
#pragma unroll
        for (int k = 0; k < RADIX; k++)
            to[padded<R>(k * L) * STRIDE] = v[m + k * TURNS];
    }
}

// The next pass's points out of shared memory.
template <int N, int R, int STRIDE>
__device__ inline void gather(float2 (&v)[R], const float2* room, int t) {
    const float2* from = room + padded<R>(t) * STRIDE;
#pragma unroll
    for (int s = 0; s < R; s++)
        v[s] = from[padded<R>(s * (N / R)) * STRIDE];
}

// The passes from the one on before which L points are transformed.
template <int N, int R, int SIGN, int STRIDE = 1, bool ONE_WARP = false, int L = 1>
__device__ inline void transform(float2 (&v)[R], float2* room, int t) {
    if constexpr (L > 1)
        twiddle<N, R, SIGN, L>(v, t);
    butterflies<N, R, SIGN, L>(v);
    constexpr int DONE = L * radix<N, R, L>();
    if constexpr (DONE < N) {
        scatter<N, R, STRIDE, L>(v, room, t);
        meet<ONE_WARP>();
        gather<N, R, STRIDE>(v, room, t);
        meet<ONE_WARP>();  // all have read before anyone writes again
        transform<N, R, SIGN, STRIDE, ONE_WARP, DONE>(v, room, t);
    }
}
