// Cross-entropy of rows of logits that pass through shared memory; the formulas are
// fast_cross_entropy.cu's.
#define INPUTS 1
#include "short.cuh"

// The row's losses, and its logarithm of the sum for a backward pass of its own, if there is room.
// With `gradient` also the logits' gradient: (softmax - one at the target) * weights[row].
template <bool gradient>
__device__ inline void cross_entropy(float* losses, float* log_sums, const long long* targets,
                                     const float* weights, long long ignored,
                                     const Matrices& matrices) {
    start(matrices);
    int round = 0;
    long long number = blockIdx.x;
    for (long long i = 0; number < matrices.tiles(); ++i, number += gridDim.x) {
        long long target[passes];
        float weight[passes] = {};
        Tile coming = tile_of(matrices, i, number);
        read_of_rows(target, targets, coming);
        if (gradient)
            read_of_rows(weight, weights, coming);
        Tile tile = arrive(matrices, i, number);
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            int row = row_of_pass(pass);
            float v[values];
            read_row(v, matrices, tile, row, Max::neutral());
            float logit = nanf("");
            if (row < tile.rows && target[pass] >= 0 && target[pass] < columns)
                logit = float(staged(matrices, tile, row, 0)[target[pass]]);

            float largest;
            float sum = exponentials(v, largest, round);
            float log_sum = logf(sum);

            if (member() == 0 && row < tile.rows) {
                losses[tile.first + row] =
                    target[pass] == ignored ? 0 : log_sum - (logit - largest);
                if (log_sums)
                    log_sums[tile.first + row] = largest + log_sum;
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
                write_row(v, matrices, tile, row);
            }
        }
        if (gradient)
            leave_with_results(matrices, i, number, tile);
        else
            leave(matrices, i, number);
    }
    finish();
}

extern "C" __global__ void SHAPED cross_entropy_short(float* losses, float* log_sums,
                                                      const Element* x, const long long* targets,
                                                      long long rows, long long ignored) {
    cross_entropy<false>(losses, log_sums, targets, nullptr, ignored, {{x}, nullptr, rows});
}

extern "C" __global__ void SHAPED cross_entropy_and_gradient_short(
    float* losses, float* log_sums, Element* dx, const Element* x, const long long* targets,
    const float* weights, long long rows, long long ignored) {
    cross_entropy<true>(losses, log_sums, targets, weights, ignored, {{x}, dx, rows});
}

// The gradient alone, from the logits and the forward pass's log_sums.
extern "C" __global__ void SHAPED cross_entropy_backward_short(Element* dx, const Element* x,
                                                               const float* log_sums,
                                                               const long long* targets,
                                                               const float* weights, long long rows,
                                                               long long ignored) {
    Matrices matrices = {{x}, dx, rows};
    start(matrices);
    long long number = blockIdx.x;
    for (long long i = 0; number < matrices.tiles(); ++i, number += gridDim.x) {
        long long target[passes];
        float weight[passes];
        float log_sum[passes];
        Tile coming = tile_of(matrices, i, number);
        read_of_rows(target, targets, coming);
        read_of_rows(weight, weights, coming);
        read_of_rows(log_sum, log_sums, coming);
        Tile tile = arrive(matrices, i, number);
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            int row = row_of_pass(pass);
            float v[values];
            read_row(v, matrices, tile, row, 0);
            float slope = target[pass] == ignored ? 0 : weight[pass];
#pragma unroll
            for (int j = 0; j < values; ++j) {
                v[j] = expf(v[j] - log_sum[pass]) * slope;
                if (column_of(j) == target[pass])
                    v[j] -= slope;
            }
            write_row(v, matrices, tile, row);
        }
        leave_with_results(matrices, i, number, tile);
    }
    finish();
}
