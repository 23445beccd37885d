// Cross-entropy from logits, for any number of rows and columns: a block a row.
// loss = log(sum of exp(x)) - x[target]; a row whose target is `ignored` has loss and gradient 0.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "block_reduce.cuh"

// The row's losses, and its logarithm of the sum of exponentials, which the gradient needs.
template <typename T>
__global__ void cross_entropy(float* losses, float* log_sums, const T* x, const long long* targets,
                              int columns, long long ignored) {
    const T* row = x + blockIdx.x * static_cast<long long>(columns);
    float largest = -infinity();
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        largest = fmaxf(largest, float(row[c]));
    largest = block_reduce<Max>(largest);

    float sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += expf(float(row[c]) - largest);
    sum = block_reduce<Add>(sum);

    if (threadIdx.x == 0) {
        long long target = targets[blockIdx.x];
        bool valid = target >= 0 && target < columns;
        float logit = valid ? float(row[target]) : nanf("");
        losses[blockIdx.x] = target == ignored ? 0 : logf(sum) - (logit - largest);
        log_sums[blockIdx.x] = largest + logf(sum);
    }
}

// The logits' gradient: (softmax - one at the target) * weights[row].
template <typename T>
__global__ void cross_entropy_backward(T* dx, const T* x, const float* log_sums,
                                       const long long* targets, const float* weights, int columns,
                                       long long ignored) {
    const T* row = x + blockIdx.x * static_cast<long long>(columns);
    T* dx_row = dx + blockIdx.x * static_cast<long long>(columns);
    long long target = targets[blockIdx.x];
    float weight = target == ignored ? 0 : weights[blockIdx.x];
    float log_sum = log_sums[blockIdx.x];
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float p = expf(float(row[c]) - log_sum);
        dx_row[c] = T((c == target ? p - 1 : p) * weight);
    }
}
