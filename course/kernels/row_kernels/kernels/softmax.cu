// Softmax of each row, a block a row: three ways, each reading the row once less than the one
// before. All are right for any number of columns; the last needs a row that fits the block's
// registers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "block_reduce.cuh"

// Maximum, sum, result: the row is read three times.
template <typename T>
__global__ void softmax_three_reads(T* out, const T* x, int columns) {
    const T* row = x + blockIdx.x * static_cast<long long>(columns);
    T* out_row = out + blockIdx.x * static_cast<long long>(columns);

    float largest = -infinity();
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        largest = fmaxf(largest, float(row[c]));
    largest = block_reduce<Max>(largest);

    float sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += expf(float(row[c]) - largest);
    sum = block_reduce<Add>(sum);

    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        out_row[c] = T(expf(float(row[c]) - largest) / sum);
}

// Maximum and sum together ("online": Milakov and Gimelshein, 2018): when a larger value comes, the
// sum so far is scaled to it. The row is read twice.
template <typename T>
__global__ void softmax_online(T* out, const T* x, int columns) {
    const T* row = x + blockIdx.x * static_cast<long long>(columns);
    T* out_row = out + blockIdx.x * static_cast<long long>(columns);

    float seen = -infinity();  // the largest value of this thread so far
    float sum = 0;  // of exp(value - seen)
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float v = float(row[c]);
        if (v > seen) {
            sum *= expf(seen - v);
            seen = v;
        }
        if (v != -infinity())
            sum += expf(v - seen);  // exp(-inf) is 0, but -inf - -inf is NaN
    }
    float largest = block_reduce<Max>(seen);
    if (sum != 0)
        sum *= expf(seen - largest);  // a thread that saw no number has nothing to scale
    sum = block_reduce<Add>(sum);

    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        out_row[c] = T(expf(float(row[c]) - largest) / sum);
}

// The row stays in registers, `kept` values a thread: read once.
template <typename T, int kept>
__global__ void softmax_one_read(T* out, const T* x, int columns) {
    const T* row = x + blockIdx.x * static_cast<long long>(columns);
    T* out_row = out + blockIdx.x * static_cast<long long>(columns);

    // Every loop over it is unrolled: an index known to the compiler makes it registers.
    float v[kept];
#pragma unroll
    for (int k = 0; k < kept; ++k) {
        int c = k * blockDim.x + threadIdx.x;
        v[k] = c < columns ? float(row[c]) : -infinity();
    }

    float largest = -infinity();
#pragma unroll
    for (int k = 0; k < kept; ++k)
        largest = fmaxf(largest, v[k]);
    largest = block_reduce<Max>(largest);

    float sum = 0;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
        v[k] = expf(v[k] - largest);
        sum += v[k];
    }
    sum = block_reduce<Add>(sum);

#pragma unroll
    for (int k = 0; k < kept; ++k) {
        int c = k * blockDim.x + threadIdx.x;
        if (c < columns)
            out_row[c] = T(v[k] / sum);
    }
}
