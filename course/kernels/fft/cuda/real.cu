// Transforms of N = 2 M real numbers: as one of M complex numbers, taken apart at the end.
//
// Numbers 2 n and 2 n + 1 are taken for the real and the imaginary part of point n. The transform
// of the even ones alone and that of the odd ones can be told apart afterwards: each has conjugate
// values at k and M - k. A last radix-2 step joins them (Cooley, Lewis and Welch, 1970).
#include "tiles.cuh"

// in: rows of N floats; out: rows of M + 1 complex numbers, the others being their conjugates.
template <int M, int R, int ROWS, int BLOCKS>
__global__ __launch_bounds__(ROWS* M / R, BLOCKS) void fft_real_rows(const float2* in, float2* out,
                                                                     long long rows) {
    extern __shared__ float2 room[];
    static_assert(R <= 16, "the last butterfly's roots are known in 32nds of a turn");
    constexpr int T = M / R;
    constexpr bool ONE_WARP = 32 % T == 0;
    const int t = threadIdx.x % T, local = threadIdx.x / T;
    const long long row = static_cast<long long>(blockIdx.x) * ROWS + local;
    float2* mine = room + local * padded<R>(M);
    const bool exists = row < rows;
    in += row * M + t;
    out += row * (M + 1) + t;
    float2 v[R] = {};
    if (exists) {
#pragma unroll
        for (int s = 0; s < R; s++)
            v[s] = LOAD(&in[s * T]);
    }
    transform<M, R, -1, 1, ONE_WARP>(v, mine, t);
#pragma unroll
    for (int s = 0; s < R; s++)
        mine[padded<R>(t + s * T)] = v[s];
    meet<ONE_WARP>();
    const float2 root = unit_root(t / (-2.0f * M));
#pragma unroll
    for (int s = 0; s < R; s++) {
        const float2 other = conjugate(mine[padded<R>((M - t - s * T) % M)]);
        const float2 even = 0.5f * (v[s] + other), apart = 0.5f * (v[s] - other);
        const float2 odd = {apart.y, -apart.x};  // divided by i
        if (exists)
            STORE(&out[s * T], even + odd * turned<2 * R, -1>(root, s));
        if (exists && s == 0 && t == 0)
            out[M] = even - odd;
    }
}
