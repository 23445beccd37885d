// Convolution through the Fourier transform: transform, multiply, transform back.
//
// A real filter treats real and imaginary part alike, so two real pictures go through one complex
// transform as its two parts, and come back apart.
#include "tiles.cuh"

// The rows of pairs of pictures of N * N floats. in: 2 * pairs of them; out: pairs of N * N points.
template <int N, int R, int ROWS, int BLOCKS>
__global__ __launch_bounds__(ROWS* N / R, BLOCKS) void pairs_rows(const float* in, float2* out) {
    extern __shared__ float2 room[];
    constexpr int T = N / R;
    const int t = threadIdx.x % T, local = threadIdx.x / T;
    const long long row = static_cast<long long>(blockIdx.x) * ROWS + local;
    const float* one = in + row / N * (2 * N * N) + row % N * N + t;
    const float* other = one + N * N;
    float2 v[R];
#pragma unroll
    for (int s = 0; s < R; s++)
        v[s] = {LOAD(&one[s * T]), LOAD(&other[s * T])};
    transform<N, R, -1, 1, 32 % T == 0>(v, room + local * padded<R>(N), t);
    out += row * N + t;
#pragma unroll
    for (int s = 0; s < R; s++)
        out[s * T] = v[s];
}

// C columns: transform, multiply by the filter's transform (N * N points), transform back.
template <int N, int R, int C, int BLOCKS>
__global__ __launch_bounds__(C* N / R, BLOCKS) void filter_columns(float2* points,
                                                                   const float2* filter) {
    extern __shared__ float2 room[];
    constexpr int T = N / R, TILES = N / C;
    const int c = threadIdx.x % C, t = threadIdx.x / C;
    const int column = blockIdx.x % TILES * C + c;
    points += static_cast<long long>(blockIdx.x / TILES) * N * N + t * N + column;
    filter += t * N + column;
    float2 v[R];
#pragma unroll
    for (int s = 0; s < R; s++)
        v[s] = points[s * T * N];
    transform<N, R, -1, C>(v, room + c, t);
#pragma unroll
    for (int s = 0; s < R; s++)
        v[s] = v[s] * filter[s * T * N];
    transform<N, R, 1, C>(v, room + c, t);
#pragma unroll
    for (int s = 0; s < R; s++)
        points[s * T * N] = scaled<N, 1>(v[s]);
}

// The rows of all pairs back, as pictures again.
template <int N, int R, int ROWS, int BLOCKS>
__global__ __launch_bounds__(ROWS* N / R, BLOCKS) void rows_pairs(const float2* in, float* out) {
    extern __shared__ float2 room[];
    constexpr int T = N / R;
    const int t = threadIdx.x % T, local = threadIdx.x / T;
    const long long row = static_cast<long long>(blockIdx.x) * ROWS + local;
    in += row * N + t;
    float2 v[R];
#pragma unroll
    for (int s = 0; s < R; s++)
        v[s] = LOAD(&in[s * T]);
    transform<N, R, 1, 1, 32 % T == 0>(v, room + local * padded<R>(N), t);
    float* one = out + row / N * (2 * N * N) + row % N * N + t;
    float* other = one + N * N;
#pragma unroll
    for (int s = 0; s < R; s++) {
        const float2 result = scaled<N, 1>(v[s]);
        STORE(&one[s * T], result.x);
        STORE(&other[s * T], result.y);
    }
}
