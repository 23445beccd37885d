// The same step with layers put together, in plain float32: what the chapter Beating PyTorch builds.
//     nvcc -arch=sm_75 -c fused.cu
#include "block_sum.cuh"

// ---- backward through pooling, ReLU and batch norm

// Which of a window's four values the pooling took. Where batch norm's scale is negative, the
// smallest becomes the largest.
__device__ int winner(const float (&y)[4], float scale) {
    int best = 0;
    for (int k = 1; k < 4; ++k)
        if (scale * y[k] > scale * y[best])
            best = k;
    return best;
}

// Sums of dz x and dz over a channel's values: of each window only the winner counts.
__global__ void block_sums(float* sums, const float* dp, const float* y, const float* norm,
                           int windows, int side, int channels) {
    int c = blockIdx.x;
    float scale = norm[2 * channels + c];
    float shift = norm[3 * channels + c];
    float one = 0;
    float two = 0;
    for (int i = threadIdx.x; i < windows; i += blockDim.x) {
        int first = first_of_window(i * channels + c, side, channels);
        float four[4];
        for (int k = 0; k < 4; ++k)
            four[k] = y[first + step_to(k, side, channels)];
        float best = four[winner(four, scale)];
        if (scale * best + shift > 0) {
            one += dp[i * channels + c];
            two += dp[i * channels + c] * (best - norm[c]) * norm[channels + c];
        }
    }
    one = block_sum(one);
    two = block_sum(two);
    if (threadIdx.x == 0) {
        sums[c] = two;
        sums[channels + c] = one;
    }
}

// A thread for each window and channel: dp, the gradient of its pooled value, becomes dy, that of
// its four outputs of the convolution.
__global__ void block_backward(float* dy, const float* dp, const float* y, const float* norm,
                               const float* sums, int n, int side, int channels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int c = i % channels;
    int first = first_of_window(i, side, channels);
    float four[4];
    for (int k = 0; k < 4; ++k)
        four[k] = y[first + step_to(k, side, channels)];
    int best = winner(four, norm[2 * channels + c]);
    bool open = norm[2 * channels + c] * four[best] + norm[3 * channels + c] > 0;
    for (int k = 0; k < 4; ++k) {
        float dz = k == best && open ? dp[i] : 0;
        int at = first + step_to(k, side, channels);
        dy[at] = through_norm(dz, four[k], norm, sums, c, channels, n / channels * 4);
    }
}

// ---- batch norm, ReLU and pooling

__global__ void bn_relu_pool(float* out, const float* y, const float* scale, const float* shift,
                             int rows, int width, int channels) {
    int total = rows / 2 * (width / 2) * channels;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int c = i % channels;
        int first = first_of_window(i, width, channels);
        float largest = 0;
        for (int k = 0; k < 4; ++k)
            largest = fmaxf(largest, scale[c] * y[first + step_to(k, width, channels)] + shift[c]);
        out[i] = largest;
    }
}

// ---- the first block without its convolution's outputs
// Pixels are bytes - 33 and the border 0.328125, as in sockets.cuh. Batch norm takes away what that
// changes, but for this factor.
constexpr float PIXEL_SCALE = 1.0f / (255 * 0.3081f);
constexpr float BORDER = 0.1307f * 255 - 33;

// Which of the 4 x 4 pixels tap t sees at position k of a window.
__device__ int pixel_of(int t, int k) {
    return (t / 3 + k / 2) * 4 + t % 3 + k % 2;
}

// Sum of what tap t sees over all outputs, and of the product of what taps t and u see.
__device__ double first_moment(const double* moments, int t) {
    double sum = 0;
    for (int k = 0; k < 4; ++k)
        sum += moments[16 * 16 + pixel_of(t, k)];
    return sum;
}
__device__ double second_moment(const double* moments, int t, int u) {
    double sum = 0;
    for (int k = 0; k < 4; ++k)
        sum += moments[pixel_of(t, k) * 16 + pixel_of(u, k)];
    return sum;
}

// A thread for each channel. `stored`: the convolution's outputs are kept, as those of the scaled
// pixels, so batch norm's numbers are for these; then nobody needs the moments any more. One block.
__global__ void norm_from_moments(float* norm, double* moments, const float* w, const float* gamma,
                                  const float* beta, int count, bool stored) {
    int c = threadIdx.x;
    if (c < 32) {
        double mean = 0;
        double square = 0;
        double taps = 0;
        for (int t = 0; t < 9; ++t) {
            taps += w[c * 9 + t];
            mean += w[c * 9 + t] * first_moment(moments, t) / count;
            for (int u = 0; u < 9; ++u)
                square += w[c * 9 + t] * second_moment(moments, t, u) * w[c * 9 + u] / count;
        }
        float variance = float(square - mean * mean);
        float inverse = rsqrtf(variance * PIXEL_SCALE * PIXEL_SCALE + 1e-5f);
        if (stored)
            mean = (mean - taps * BORDER) * PIXEL_SCALE;
        else
            inverse *= PIXEL_SCALE;
        store_norm(norm, c, 32, float(mean), inverse, gamma[c], beta[c]);
    }
    __syncthreads();
    if (stored)
        for (int i = threadIdx.x; i < 17 * 16; i += blockDim.x)
            moments[i] = 0;
}

__device__ float pixel_at(const unsigned char* image, int y, int x) {
    bool inside = y >= 0 && y < 28 && x >= 0 && x < 28;
    return inside ? image[y * 28 + x] - 33.0f : 0.328125f;
}

// The convolution once more, for the gradient that each pooled value sends back: sums[32][10] of dz
// and of dz times the nine pixels. A block for each channel.
__global__ void conv1_backward(float* sums, const unsigned char* images, const float* w,
                               const float* norm, const float* dp, int windows) {
    int c = blockIdx.x;
    float own[10] = {};
    for (int i = threadIdx.x; i < windows; i += blockDim.x) {
        const unsigned char* image = images + i / (14 * 14) * 784;
        float q[16];
        for (int k = 0; k < 16; ++k)
            q[k] = pixel_at(image, i / 14 % 14 * 2 - 1 + k / 4, i % 14 * 2 - 1 + k % 4);
        float four[4] = {};
        for (int k = 0; k < 4; ++k)
            for (int t = 0; t < 9; ++t)
                four[k] += w[c * 9 + t] * q[pixel_of(t, k)];
        int best = winner(four, norm[64 + c]);
        bool open = norm[64 + c] * four[best] + norm[96 + c] > 0;
        float dz = open ? dp[i * 32 + c] : 0;
        own[9] += dz;
        for (int t = 0; t < 9; ++t)
            own[t] += dz * q[pixel_of(t, best)];
    }
    for (int t = 0; t < 10; ++t) {
        float sum = block_sum(own[t]);
        if (threadIdx.x == 0)
            sums[c * 10 + t] = sum;
    }
}

// From these sums and the moments: the gradients of weights, gamma and beta. Leaves the moments
// zero. One block.
__global__ void conv1_gradients(float* dw, float* dgamma, float* dbeta, double* moments,
                                const float* sums, const float* w, const float* norm, int count) {
    int c = threadIdx.x;
    if (c < 32) {
        const float* own = &sums[c * 10];
        double dz_x = 0;  // x is linear in the pixels
        for (int t = 0; t < 9; ++t)
            dz_x += w[c * 9 + t] * own[t];
        dz_x = (dz_x - norm[c] * own[9]) * norm[32 + c];
        for (int t = 0; t < 9; ++t) {
            double x_pixel = -norm[c] * first_moment(moments, t);
            for (int u = 0; u < 9; ++u)
                x_pixel += w[c * 9 + u] * second_moment(moments, t, u);
            x_pixel *= norm[32 + c];
            double by_mean = own[9] * first_moment(moments, t) / count;
            dw[c * 9 + t] = norm[64 + c] * (own[t] - by_mean - dz_x * x_pixel / count);
        }
        dgamma[c] = dz_x;
        dbeta[c] = own[9];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 17 * 16; i += blockDim.x)
        moments[i] = 0;
}

// ---- the end of the network adds to what must be zero

__global__ void clear(float* numbers, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        numbers[i] = 0;
}

// ---- the first linear layer, each of its sums in parts

// A thread for each weight: w[out][in] becomes turned[in][out], and the sums y[n] begin at 0.
__global__ void before_split_sums(float* turned, float* y, const float* w, int out, int in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < out * in)
        turned[i % in * out + i / in] = w[i];
    for (; i < n; i += gridDim.x * blockDim.x)
        y[i] = 0;
}

// Block (n, part) adds up its part of digit n's sums, a thread for each output.
__global__ void split_sums(float* out, const float* x, const float* w, int inputs, int splits) {
    float sum = 0;
    for (int i = blockIdx.y; i < inputs; i += splits)
        sum += x[blockIdx.x * inputs + i] * w[i * blockDim.x + threadIdx.x];
    atomicAdd(&out[blockIdx.x * blockDim.x + threadIdx.x], sum);
}

__global__ void bias_and_relu(float* y, const float* bias, int out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = fmaxf(y[i] + bias[i % out], 0.0f);
}
