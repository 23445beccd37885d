// A training step with a kernel for each layer and direction: every array is stored, then read.
// Images, lines, pixels, channels: a pixel's channels lie side by side. Weights [out][3 x 3][in].
// `norm` holds four numbers a channel: mean, inverse deviation, and the scale and shift that batch
// norm comes down to.
//     nvcc -arch=sm_75 -c plain.cu
#include "block_sum.cuh"

__global__ void scale_pixels(float* x, const unsigned char* images, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = (images[i] / 255.0f - 0.1307f) / 0.3081f;
}

__global__ void conv_forward(float* y, const float* x, const float* w, int batch, int side, int in,
                             int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * side * side * out)
        return;
    int k = i % out;
    int pixel = i / out;
    int column = pixel % side;
    int row = pixel / side % side;
    float sum = 0;
    for (int tap = 0; tap < 9; ++tap) {
        int down = tap / 3 - 1;
        int right = tap % 3 - 1;
        if (row + down < 0 || row + down >= side || column + right < 0 || column + right >= side)
            continue;
        const float* from = &x[(pixel + down * side + right) * in];
        for (int c = 0; c < in; ++c)
            sum += w[(k * 9 + tap) * in + c] * from[c];
    }
    y[i] = sum;
}

// A block for each channel.
__global__ void statistics(float* norm, const float* y, const float* gamma, const float* beta,
                           int count, int channels) {
    int c = blockIdx.x;
    float sum = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        sum += y[i * channels + c];
    float mean = block_sum(sum) / count;
    float squares = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        float from_mean = y[i * channels + c] - mean;
        squares += from_mean * from_mean;
    }
    float inverse = rsqrtf(block_sum(squares) / count + 1e-5f);
    if (threadIdx.x == 0)
        store_norm(norm, c, channels, mean, inverse, gamma[c], beta[c]);
}

__global__ void norm_forward(float* z, const float* y, const float* norm, int n, int channels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int c = i % channels;
    if (i < n)
        z[i] = norm[2 * channels + c] * y[i] + norm[3 * channels + c];
}

__global__ void relu_forward(float* a, const float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = fmaxf(z[i], 0.0f);
}

// `winner`: which of a window's four was the largest.
__global__ void pool_forward(float* p, unsigned char* winner, const float* a, int n, int side,
                             int channels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int first = first_of_window(i, side, channels);
    int best = 0;
    for (int k = 1; k < 4; ++k)
        if (a[first + step_to(k, side, channels)] > a[first + step_to(best, side, channels)])
            best = k;
    p[i] = a[first + step_to(best, side, channels)];
    winner[i] = best;
}

__global__ void linear_forward(float* y, const float* x, const float* w, const float* bias,
                               int batch, int in, int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * out)
        return;
    float sum = bias[i % out];
    for (int j = 0; j < in; ++j)
        sum += w[i % out * in + j] * x[i / out * in + j];
    y[i] = sum;
}

__global__ void cross_entropy(float* losses, float* dlogits, const float* logits,
                              const unsigned char* labels, int batch) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= batch)
        return;
    const float* z = &logits[n * 10];
    float largest = z[0];
    for (int k = 1; k < 10; ++k)
        largest = fmaxf(largest, z[k]);
    float sum = 0;
    for (int k = 0; k < 10; ++k)
        sum += expf(z[k] - largest);
    losses[n] = (logf(sum) + largest - z[labels[n]]) / batch;
    for (int k = 0; k < 10; ++k)
        dlogits[n * 10 + k] = (expf(z[k] - largest) / sum - (k == labels[n])) / batch;
}

__global__ void sum_over_batch(float* out, const float* parts, int batch, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int b = 0; b < batch; ++b)
        sum += parts[b * n + i];
    out[i] = sum;
}

__global__ void linear_backward_weight(float* dw, const float* dy, const float* x, int batch,
                                       int in, int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= in * out)
        return;
    float sum = 0;
    for (int b = 0; b < batch; ++b)
        sum += dy[b * out + i / in] * x[b * in + i % in];
    dw[i] = sum;
}

__global__ void linear_backward_input(float* dx, const float* dy, const float* w, int batch, int in,
                                      int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * in)
        return;
    float sum = 0;
    for (int k = 0; k < out; ++k)
        sum += dy[i / in * out + k] * w[k * in + i % in];
    dx[i] = sum;
}

__global__ void pool_backward(float* d, const float* dp, const unsigned char* winner, int n,
                              int side, int channels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int first = first_of_window(i, side, channels);
    for (int k = 0; k < 4; ++k)
        d[first + step_to(k, side, channels)] = k == winner[i] ? dp[i] : 0;
}

__global__ void relu_backward(float* dz, const float* da, const float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        dz[i] = a[i] > 0 ? da[i] : 0;
}

// sums: of dz (the gradient of beta), then of dz times x (of gamma). A block for each channel.
__global__ void norm_backward_sums(float* sums, const float* dz, const float* y, const float* norm,
                                   int count, int channels) {
    int c = blockIdx.x;
    float one = 0;
    float two = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        float x = (y[i * channels + c] - norm[c]) * norm[channels + c];
        one += dz[i * channels + c];
        two += dz[i * channels + c] * x;
    }
    one = block_sum(one);
    two = block_sum(two);
    if (threadIdx.x == 0) {
        sums[c] = two;
        sums[channels + c] = one;
    }
}

__global__ void norm_backward(float* dy, const float* dz, const float* y, const float* norm,
                              const float* sums, int n, int channels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int c = i % channels;
    dy[i] = through_norm(dz[i], y[i], norm, sums, c, channels, n / channels);
}

// Of each image by itself: share[batch][out][9][in].
__global__ void conv_backward_weight(float* share, const float* dy, const float* x, int batch,
                                     int side, int in, int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * out * 9 * in)
        return;
    int c = i % in;
    int tap = i / in % 9;
    int k = i / in / 9 % out;
    int image = i / in / 9 / out;
    int down = tap / 3 - 1;
    int right = tap % 3 - 1;
    float sum = 0;
    for (int row = max(0, -down); row < min(side, side - down); ++row)
        for (int column = max(0, -right); column < min(side, side - right); ++column) {
            int pixel = (image * side + row) * side + column;
            sum += dy[pixel * out + k] * x[(pixel + down * side + right) * in + c];
        }
    share[i] = sum;
}

__global__ void conv_backward_input(float* dx, const float* dy, const float* w, int batch, int side,
                                    int in, int out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * side * side * in)
        return;
    int c = i % in;
    int pixel = i / in;
    int column = pixel % side;
    int row = pixel / side % side;
    float sum = 0;
    for (int tap = 0; tap < 9; ++tap) {
        int down = 1 - tap / 3;
        int right = 1 - tap % 3;
        if (row + down < 0 || row + down >= side || column + right < 0 || column + right >= side)
            continue;
        const float* from = &dy[(pixel + down * side + right) * out];
        for (int k = 0; k < out; ++k)
            sum += w[(k * 9 + tap) * in + c] * from[k];
    }
    dx[i] = sum;
}

__global__ void sgd(float* w, const float* dw, float rate, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        w[i] -= rate * dw[i];
}
