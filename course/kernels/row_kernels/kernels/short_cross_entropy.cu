// Cross-entropy of short rows of logits, many at a time; the formulas are fast_cross_entropy.cu's.
#define INPUTS 1
#include "short.cuh"

// The row's losses, and its logarithm of the sum for a backward pass of its own.
// With `dx` also the logits' gradient: (softmax - one at the target) * weights[row].
template <bool gradient>
__device__ inline void cross_entropy(float* losses, float* log_sums, Element* dx, const Element* x,
                                     const long long* targets, const float* weights, long long rows,
                                     long long ignored) {
    long long first = first_of_tile();
    int here = rows_of_tile(first, rows);
    long long target[passes];
    float weight[passes] = {};
    read_of_rows(target, targets, first, here);
    if (gradient)
        read_of_rows(weight, weights, first, here);
    bring(x, first, here);
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
        int row = row_of_pass(pass);
        float v[values];
        read_row(v, row, here, Max::neutral());
        float logit = nanf("");
        if (row < here && target[pass] >= 0 && target[pass] < columns)
            logit = float(staged()[row * columns + target[pass]]);

        float largest;
        float sum = exponentials(v, largest);
        float log_sum = logf(sum);

        if (member() == 0 && row < here) {
            losses[first + row] = target[pass] == ignored ? 0 : log_sum - (logit - largest);
            log_sums[first + row] = largest + log_sum;
        }
        if (gradient) {
            float slope = target[pass] == ignored ? 0 : weight[pass];
            float scale = slope / sum;
#pragma unroll
            for (int j = 0; j < values; ++j) {
                v[j] *= scale;
                if (column_of(j) == target[pass])
                    v[j] -= slope;
            }
            __syncwarp();  // every lane of the row has its logit
            write_row(v, row, here);
        }
    }
    if (gradient) {
        __syncthreads();
        take(dx, first, here);
    }
}

extern "C" __global__ void SHAPED cross_entropy_short(float* losses, float* log_sums,
                                                      const Element* x, const long long* targets,
                                                      long long rows, long long ignored) {
    cross_entropy<false>(losses, log_sums, nullptr, x, targets, nullptr, rows, ignored);
}

extern "C" __global__ void SHAPED cross_entropy_and_gradient_short(
    float* losses, float* log_sums, Element* dx, const Element* x, const long long* targets,
    const float* weights, long long rows, long long ignored) {
    cross_entropy<true>(losses, log_sums, dx, x, targets, weights, rows, ignored);
}

// The gradient alone, from the logits and the forward pass's log_sums.
extern "C" __global__ void SHAPED cross_entropy_backward_short(Element* dx, const Element* x,
                                                               const float* log_sums,
                                                               const long long* targets,
                                                               const float* weights, long long rows,
                                                               long long ignored) {
    long long first = first_of_tile();
    int here = rows_of_tile(first, rows);
    long long target[passes];
    float weight[passes];
    float log_sum[passes];
    read_of_rows(target, targets, first, here);
    read_of_rows(weight, weights, first, here);
    read_of_rows(log_sum, log_sums, first, here);
    bring(x, first, here);
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
        int row = row_of_pass(pass);
        float v[values];
        read_row(v, row, here, 0);
        float slope = target[pass] == ignored ? 0 : weight[pass];
#pragma unroll
        for (int j = 0; j < values; ++j) {
            v[j] = expf(v[j] - log_sum[pass]) * slope;
            if (column_of(j) == target[pass])
                v[j] -= slope;
        }
        write_row(v, row, here);
    }
    __syncthreads();
    take(dx, first, here);
}
