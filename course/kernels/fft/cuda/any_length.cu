// A transform of any length n, primes too, as a convolution of M points, a power of two from
// 2 n - 1 (Bluestein, 1970). With n k = (n² + k² - (k - n)²) / 2 the sum becomes one over x * chirp
// against a chirp that depends on k - n only. One block does it all, and never leaves the chip.
#include "tiles.cuh"

// in, out: rows of n points. chirp: n points, exp(SIGN pi i k² / n). filter: the transform, of M
// points, of the chirp's conjugates, the ones with negative k at the end.
template <int M, int R, int SIGN>
__global__ __launch_bounds__(M / R) void fft_any_rows(const float2* in, float2* out, int n,
                                                      const float2* chirp, const float2* filter) {
    extern __shared__ float2 room[];
    constexpr int T = M / R;
    const int t = threadIdx.x;
    const long long start = static_cast<long long>(blockIdx.x) * n;
    float2 v[R];
#pragma unroll
    for (int s = 0; s < R; s++) {
        const int i = t + s * T;
        v[s] = i < n ? in[start + i] * chirp[i] : float2{0, 0};
    }
    transform<M, R, -1>(v, room, t);
#pragma unroll
    for (int s = 0; s < R; s++)
        v[s] = v[s] * filter[t + s * T];
    __syncthreads();
    transform<M, R, 1>(v, room, t);
    const float scale = SIGN > 0 ? 1.0f / n : 1.0f;
#pragma unroll
    for (int s = 0; s < R; s++) {
        const int k = t + s * T;
        if (k < n)
            out[start + k] = scale * (scaled<M, 1>(v[s]) * chirp[k]);
    }
}
