// Softmax while the scores still come, tile by tile, as the tensor cores' sums lie in registers: a
// thread has two rows, r and r + 8, and of each group of 8 columns two neighbours in either row,
// d[0], d[1] of row r and d[2], d[3] of row r + 8. Four neighbouring lanes share their rows.
#pragma once
#include "problem.cuh"

__device__ float power_of_two(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// Two numbers of 16 bits in one register.
__device__ unsigned packed(float first, float second) {
#ifdef HALF
    __half2 both = __floats2half2_rn(first, second);
#else
    __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
#endif
    return *(unsigned*)&both;
}

// What is known of a thread's two rows.
struct Rows {
    float most[2] = {-INFINITY, -INFINITY};  // the largest score so far
    float sum[2] = {0, 0};  // of this thread's weights, all relative to the largest score

    // Scores to weights 2 ** (scale * (score - most)). factor: by what earlier weights shrink.
    template <int COUNT>
    __device__ void weigh(float (&scores)[COUNT], float scale, float (&factor)[2]) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float largest[2] = {most[half], most[half]};  // two chains: half the waiting
#pragma unroll
            for (int i = half * 2; i < COUNT; i += 4)
                for (int j = 0; j < 2; ++j)
                    largest[j] = fmaxf(largest[j], scores[i + j]);
            float next = fmaxf(largest[0], largest[1]);
            next = fmaxf(next, __shfl_xor_sync(~0u, next, 1));
            next = fmaxf(next, __shfl_xor_sync(~0u, next, 2));
            float shift = next == -INFINITY ? 0 : next * scale;  // -inf - -inf would be NaN
            factor[half] = power_of_two(most[half] * scale - shift);
            most[half] = next;
            float sums[2] = {sum[half] * factor[half], 0};
#pragma unroll
            for (int i = half * 2; i < COUNT; i += 4)
                for (int j = 0; j < 2; ++j) {
                    scores[i + j] = power_of_two(scores[i + j] * scale - shift);
                    sums[j] += scores[i + j];
                }
            sum[half] = sums[0] + sums[1];
        }
    }

    // Sums of all columns, and results divided by them; a row that saw no key has zeros.
    template <int COUNT>
    __device__ void finish(float (&out)[COUNT]) {
        float factor[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            sum[half] += __shfl_xor_sync(~0u, sum[half], 1);
            sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
            factor[half] = sum[half] > 0 ? 1 / sum[half] : 0;
        }
        shrink(out, factor);
    }

    template <int COUNT>
    __device__ static void shrink(float (&out)[COUNT], const float (&factor)[2]) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            out[i] *= factor[i / 2 % 2];
    }

    // The logarithm of each row's sum of exponentials, which the backward pass needs.
    __device__ void store_lse(float* lse, float scale, int row, int end) const {
        const float LN_2 = 0.69314718f;
#pragma unroll
        for (int half = 0; half < 2; ++half)
            if (threadIdx.x % 4 == 0 && row + half * 8 < end)
                lse[row + half * 8] = (most[half] * scale + log2f(sum[half])) * LN_2;
    }
};

// Weights as the left factor of the next product: where two sums lie, two factors
// of 16 bits lie, in one register.
template <int COUNT>
__device__ void pack(unsigned (&weights)[COUNT / 2], const float (&scores)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i)
        weights[i] = packed(scores[i * 2], scores[i * 2 + 1]);
}
