// What the plain kernels and the fused ones share: a block's sum, a pooling window, batch norm.
#pragma once

// The sum of what the threads of a block hold; each of them gets it.
__device__ inline float block_sum(float value) {
    __shared__ float parts[256];
    parts[threadIdx.x] = value;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    __syncthreads();
    float sum = parts[0];
    __syncthreads();
    return sum;
}

// Where the upper left value of a window lies: number i of [batch][side / 2][side / 2][channels].
__device__ inline int first_of_window(int i, int side, int channels) {
    int half = side / 2;
    int c = i % channels;
    int x = i / channels % half;
    int row = i / channels / half;  // of all images
    return ((2 * row) * side + 2 * x) * channels + c;
}

// From there to value k = 0 ... 3 of the window.
__device__ inline int step_to(int k, int side, int channels) {
    return (k / 2 * side + k % 2) * channels;
}

__device__ inline void store_norm(float* norm, int c, int channels, float mean, float inverse,
                                  float gamma, float beta) {
    norm[c] = mean;
    norm[channels + c] = inverse;
    norm[2 * channels + c] = gamma * inverse;
    norm[3 * channels + c] = beta - mean * gamma * inverse;
}

// Batch norm backward, of one value. sums: of dz x, then of dz, over the channel's `count` values.
__device__ inline float through_norm(float dz, float y, const float* norm, const float* sums, int c,
                                     int channels, int count) {
    float x = (y - norm[c]) * norm[channels + c];
    float without = dz - sums[channels + c] / count - x * sums[c] / count;
    return norm[2 * channels + c] * without;
}
