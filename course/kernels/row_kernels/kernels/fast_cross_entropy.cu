// Cross-entropy from logits: loss = log(sum of exp(x)) - x[target], each row of logits read once.
// The probabilities are never stored: the gradient is written from the same registers.
#define INPUTS 1
#include "fast.cuh"

// The target of a row. A row that does not count has `ignored` for its target.
struct Targets {
    const long long* targets;
    long long rows;
    long long ignored;

    __device__ long long of(long long row) const {
        return row < rows ? targets[row] : ignored;
    }
};

// The target's column in this block's part of the row, or -1 if it is not there.
__device__ inline int in_part(long long target) {
    long long column = target - rank() * part;
    return column >= 0 && column < part ? int(column) : -1;
}

// Whether this thread writes the row's loss: one thread of the block that has the target.
// A target outside the row makes the loss NaN, which the cluster's first block writes.
__device__ inline bool writes_loss(long long target) {
    bool valid = target >= 0 && target < columns;
    long long block = valid ? target / part : 0;
    return member() == 0 && block == rank();
}

// The row's losses, and its logarithm of the sum for a backward pass of its own.
// With `dx` also the logits' gradient: (softmax - one at the target) * weights[row].
template <bool gradient>
__device__ inline void cross_entropy(float* losses, float* log_sums, Element* dx, const Element* x,
                                     Targets targets, const float* weights) {
    Tiles tiles = {{x}, targets.rows};
    start(tiles);
    int round = 0;
    long long tile = tiles.first();
    long long next_target = targets.of(tile * tile_rows + row_in_tile());
    for (int i = 0; tile < tiles.count(); ++i, tile += tiles.step()) {
        wait_for_tile(i);
        float v[values];
        read_tile(v, tiles, i, tile, Max::neutral());

        long long row = tile * tile_rows + row_in_tile();
        bool exists = row < targets.rows;
        float weight = gradient && exists ? weights[row] : 0;
        long long target = next_target;
        next_target = targets.of(row + tiles.step() * tile_rows);  // needed a tile later
        int column = in_part(target);
        int lead = lead_in(tiles, i, tile);
        float logit = nanf("");
        if (column >= 0)
            logit = float(row_of(tiles, i, tile)[column]);

        float largest = Max::neutral();
#pragma unroll
        for (int j = 0; j < values; ++j)
            largest = fmaxf(largest, v[j]);
        largest = all_reduce<Max>(largest, round);
        refill(tiles, i, tile);

        float sum = 0;
#pragma unroll
        for (int j = 0; j < values; ++j) {
            v[j] = expf(v[j] - largest);
            sum += v[j];
        }
        sum = all_reduce<Add>(sum, round);
        float log_sum = logf(sum);

        if (exists && writes_loss(target)) {
            losses[row] = target == targets.ignored ? 0 : log_sum - (logit - largest);
            log_sums[row] = largest + log_sum;
        }
        if (gradient && exists) {
            if (target == targets.ignored)
                weight = 0;
            float scale = weight / sum;
#pragma unroll
            for (int j = 0; j < values; ++j) {
                v[j] *= scale;
                if (column_of(j / pack, lead) + j % pack == column)
                    v[j] -= weight;
            }
            write_row(dx + row * columns + rank() * part, v);
        }
    }
}

extern "C" __global__ void SHAPED cross_entropy_fast(float* losses, float* log_sums,
                                                     const Element* x, const long long* targets,
                                                     long long rows, long long ignored) {
    cross_entropy<false>(losses, log_sums, nullptr, x, {targets, rows, ignored}, nullptr);
}

extern "C" __global__ void SHAPED cross_entropy_and_gradient_fast(
    float* losses, float* log_sums, Element* dx, const Element* x, const long long* targets,
    const float* weights, long long rows, long long ignored) {
    cross_entropy<true>(losses, log_sums, dx, x, {targets, rows, ignored}, weights);
}

// The gradient alone, from the logits and the forward pass's log_sums. Nothing is agreed on, so
// that the blocks that share a row need not be a cluster.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    cross_entropy_backward_fast(Element* dx, const Element* x, const float* log_sums,
                                const long long* targets, const float* weights, long long rows,
                                long long ignored) {
    Tiles tiles = {{x}, rows};
    Targets of = {targets, rows, ignored};
    start<false>(tiles);
    long long tile = tiles.first();
    for (int i = 0; tile < tiles.count(); ++i, tile += tiles.step()) {
        wait_for_tile(i);
        float v[values];
        read_tile(v, tiles, i, tile, 0);
        if (ring)
            __syncthreads();
        refill(tiles, i, tile);

        long long row = tile * tile_rows + row_in_tile();
        long long target = of.of(row);
        float log_sum = row < rows ? log_sums[row] : 0;
        float weight = row < rows ? weights[row] : 0;
        if (target == ignored)
            weight = 0;
        int column = in_part(target);
        int lead = lead_in(tiles, i, tile);
#pragma unroll
        for (int j = 0; j < values; ++j) {
            v[j] = expf(v[j] - log_sum) * weight;
            if (column_of(j / pack, lead) + j % pack == column)
                v[j] -= weight;
        }
        if (row < rows)
            write_row(dx + row * columns + rank() * part, v);
    }
}
