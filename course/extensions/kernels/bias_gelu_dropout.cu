// dropout(gelu(x + bias)) and its backward pass, each in one pass over memory. The mask is not
// stored: both passes draw it again from the same seed.
//
// NUMBER: float, double or __nv_bfloat16. CHUNK: 8 if the columns are a multiple of 8 and every
// pointer of 16 bytes, else 1. A thread has CHUNK columns, the same ones of every row it visits.
#include <cuda_bf16.h>

#ifndef NUMBER
#define NUMBER float
#endif
#ifndef CHUNK
#define CHUNK 1
#endif
#ifndef ROUNDS
#define ROUNDS 7  // of Philox; 7 pass all statistical tests (Salmon and others, 2011), 10 are usual
#endif
#ifndef UNROLL
#define UNROLL 2
#endif

constexpr int DRAWN = 8;  // numbers of 16 bits that one call of Philox gives
constexpr int UNROLLED = UNROLL;

template <typename Number>
struct Computed {
    using type = float;
};
template <>
struct Computed<double> {
    using type = double;
};
using Real = Computed<NUMBER>::type;

struct __align__(sizeof(NUMBER) * CHUNK < 16 ? sizeof(NUMBER) * CHUNK : 16) Chunk {
    NUMBER of[CHUNK];
};

// Philox4x32: 128 random bits for each counter, the same ones each time.
__device__ inline uint4 philox(unsigned long long counter, unsigned long long seed) {
    uint4 state =
        make_uint4(static_cast<unsigned>(counter), static_cast<unsigned>(counter >> 32), 0, 0);
    unsigned key_x = static_cast<unsigned>(seed), key_y = static_cast<unsigned>(seed >> 32);
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        const unsigned long long a = 0xD2511F53ull * state.x, b = 0xCD9E8D57ull * state.z;
        state =
            make_uint4(static_cast<unsigned>(b >> 32) ^ state.y ^ key_x, static_cast<unsigned>(b),
                       static_cast<unsigned>(a >> 32) ^ state.w ^ key_y, static_cast<unsigned>(a));
        key_x += 0x9E3779B9u;
        key_y += 0xBB67AE85u;
    }
    return state;
}

// What is left of an element: 0, or what makes up for those that are dropped.
struct Dropout {
    unsigned dropped;  // of 65,536
    float scale;
    unsigned long long seed;

    __device__ Dropout(float p, const long long* seed_at)
        : dropped(static_cast<unsigned>(p * 65536 + 0.5f)), seed(*seed_at) {
        scale = dropped < 65536 ? 65536.0f / static_cast<float>(65536 - dropped) : 0.0f;
    }

    // For the CHUNK elements from number `first` on.
    __device__ void scales(float (&of)[CHUNK], long long first) const {
        if (dropped == 0) {
#pragma unroll
            for (int k = 0; k < CHUNK; ++k)
                of[k] = 1;
            return;
        }
        const uint4 bits = philox(first / DRAWN, seed);
        const unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
        for (int k = 0; k < CHUNK; ++k) {
            const int n = CHUNK == DRAWN ? k : static_cast<int>(first % DRAWN);
            const unsigned word = CHUNK == DRAWN ? words[k / 2] : pick(bits, n / 2);
            const unsigned drawn = word >> (16 * (n % 2)) & 0xFFFF;
            of[k] = drawn < dropped ? 0.0f : scale;
        }
    }

    __device__ static unsigned pick(uint4 bits, int n) {
        const unsigned low = n % 2 ? bits.y : bits.x, high = n % 2 ? bits.w : bits.z;
        return n / 2 ? high : low;
    }
};

struct Normal {
    Real below, density;  // the normal distribution's, up to u and at u
};

__device__ inline Normal normal(double u) {
    const double below = 0.5 * (1 + erf(u * 0.70710678118654752));
    return {static_cast<Real>(below), static_cast<Real>(0.39894228040143268 * exp(-0.5 * u * u))};
}

// Float: erf to 1.5e-7 by Abramowitz and Stegun 7.1.26, which shares its exponential with the
// density.
__device__ inline Normal normal(float u) {
    constexpr float half_root = 0.70710678f, density_at_0 = 0.39894228f;
    const float z = fabsf(u) * half_root;
    const float t = __fdividef(1.0f, 1.0f + 0.3275911f * z);
    const float bell = __expf(-z * z);
    float sum = 1.061405429f;
    sum = sum * t - 1.453152027f;
    sum = sum * t + 1.421413741f;
    sum = sum * t - 0.284496736f;
    sum = sum * t + 0.254829592f;
    const float beyond = 0.5f * sum * t * bell;  // |u| and more
    return {u < 0 ? beyond : 1 - beyond, density_at_0 * bell};
}

__global__ void bias_gelu_dropout(NUMBER* __restrict__ y, const NUMBER* __restrict__ x,
                                  const NUMBER* __restrict__ bias, const long long* seed, float p,
                                  long long rows, int columns) {
    const int column = (blockIdx.x * blockDim.x + threadIdx.x) * CHUNK;
    if (column >= columns)
        return;
    const Dropout dropout(p, seed);
    const Chunk shift = *reinterpret_cast<const Chunk*>(bias + column);
#pragma unroll UNROLLED
    for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
        const long long first = row * columns + column;
        Chunk values = *reinterpret_cast<const Chunk*>(x + first);
        float scales[CHUNK];
        dropout.scales(scales, first);
#pragma unroll
        for (int k = 0; k < CHUNK; ++k) {
            const Real u = static_cast<Real>(values.of[k]) + static_cast<Real>(shift.of[k]);
            values.of[k] = static_cast<NUMBER>(u * normal(u).below * scales[k]);
        }
        *reinterpret_cast<Chunk*>(y + first) = values;
    }
}

// sums: [gridDim.y, columns], what this block's rows add to the bias's gradient.
__global__ void bias_gelu_dropout_backward(NUMBER* __restrict__ dx, Real* __restrict__ sums,
                                           const NUMBER* __restrict__ dy,
                                           const NUMBER* __restrict__ x,
                                           const NUMBER* __restrict__ bias, const long long* seed,
                                           float p, long long rows, int columns) {
    const int column = (blockIdx.x * blockDim.x + threadIdx.x) * CHUNK;
    if (column >= columns)
        return;
    const Dropout dropout(p, seed);
    const Chunk shift = *reinterpret_cast<const Chunk*>(bias + column);
    Real sum[CHUNK] = {};
#pragma unroll UNROLLED
    for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
        const long long first = row * columns + column;
        const Chunk values = *reinterpret_cast<const Chunk*>(x + first);
        Chunk slopes = *reinterpret_cast<const Chunk*>(dy + first);
        float scales[CHUNK];
        dropout.scales(scales, first);
#pragma unroll
        for (int k = 0; k < CHUNK; ++k) {
            const Real u = static_cast<Real>(values.of[k]) + static_cast<Real>(shift.of[k]);
            const Normal at = normal(u);
            const Real slope =
                static_cast<Real>(slopes.of[k]) * scales[k] * (at.below + u * at.density);
            sum[k] += slope;
            slopes.of[k] = static_cast<NUMBER>(slope);
        }
        *reinterpret_cast<Chunk*>(dx + first) = slopes;
    }
#pragma unroll
    for (int k = 0; k < CHUNK; ++k)
        sums[static_cast<long long>(blockIdx.y) * columns + column + k] = sum[k];
}

// dbias: the sums of the columns of `sums`, [parts, columns]. A block has 32 columns and 8 warps.
__global__ void add_parts(NUMBER* dbias, const Real* sums, int parts, int columns) {
    __shared__ Real of_warps[8][32];
    const int column = blockIdx.x * 32 + threadIdx.x;
    Real sum = 0;
    if (column < columns)
#pragma unroll 4
        for (int part = threadIdx.y; part < parts; part += 8)
            sum += sums[static_cast<long long>(part) * columns + column];
    of_warps[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= columns)
        return;
    for (int warp = 1; warp < 8; ++warp)
        sum += of_warps[warp][threadIdx.x];
    dbias[column] = static_cast<NUMBER>(sum);
}
