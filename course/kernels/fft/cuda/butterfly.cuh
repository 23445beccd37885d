// The Fourier transform of R = 2, 4, 8, 16 or 32 points that one thread holds in registers.
#pragma once
#include "complex.cuh"

// cos(2 pi k / 32), k = 0 ... 32. Every k is known when compiling, so no table is left of it.
__device__ constexpr float cosine(int k) {
    constexpr float QUARTER[] = {1.0f,
                                 0.980785280403f,
                                 0.923879532511f,
                                 0.831469612303f,
                                 0.707106781187f,
                                 0.555570233020f,
                                 0.382683432365f,
                                 0.195090322016f,
                                 0.0f};
    const int folded = k <= 16 ? k : 32 - k;
    return folded <= 8 ? QUARTER[folded] : -QUARTER[16 - folded];
}

// a * exp(SIGN * 2 pi i k / R) for 0 <= k < R.
template <int R, int SIGN>
__device__ inline float2 turned(float2 a, int k) {
    if (k == 0)
        return a;
    if (2 * k == R)
        return {-a.x, -a.y};
    if (4 * k == R)  // a quarter of a turn: no multiplication
        return {-SIGN * a.y, SIGN * a.x};
    if (4 * k == 3 * R)
        return {SIGN * a.y, -SIGN * a.x};
    const int angle = k * (32 / R);
    const float2 w = {cosine(angle), SIGN * cosine(angle < 8 ? 8 - angle : angle - 8)};
    return a * w;
}

// v[k] = sum over n of v[n] * exp(SIGN * 2 pi i n k / R). Sums of the two halves give the results
// with even k, differences, turned, those with odd k: two transforms half as long.
template <int R, int SIGN>
__device__ inline void butterfly(float2 (&v)[R]) {
    if constexpr (R > 1) {
        float2 even[R / 2], odd[R / 2];
#pragma unroll
        for (int n = 0; n < R / 2; n++) {
            even[n] = v[n] + v[n + R / 2];
            odd[n] = turned<R, SIGN>(v[n] - v[n + R / 2], n);
        }
        butterfly<R / 2, SIGN>(even);
        butterfly<R / 2, SIGN>(odd);
#pragma unroll
        for (int k = 0; k < R / 2; k++) {
            v[2 * k] = even[k];
            v[2 * k + 1] = odd[k];
        }
    }
}
