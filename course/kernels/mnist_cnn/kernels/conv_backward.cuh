// Backward through both convolutions, in two kernels that do not depend on each other: one for the
// gradient of the second convolution's input, which goes on into the first convolution's weights,
// one for the second convolution's weights.
#pragma once
#include "conv1.cuh"
#include "conv_forward.cuh"
#include "linear.cuh"

// ---- gradient of the second convolution's outputs
// Pooling sends a window's gradient dz to the position it took. Batch norm makes of it, at all
// positions,
//   dy = gamma * inverse * (dz - mean(dz) - xhat * mean(dz * xhat))
//      = direct * dz + constant + slope * y
constexpr int PITCH_DY = OUT + 8;
constexpr int DY_NUMBERS = 241 * PITCH_DY;  // with a border of zeros, as the pooled image has

struct Norm2Backward {
    float direct[C2];
    float constant[C2];
    float slope[C2];
    float sign[C2];  // of gamma: -1 where pooling took the smallest
};

__device__ inline void norm2_backward(const Network& net, Norm2Backward& norm) {
    for (int c = threadIdx.x; c < C2; c += blockDim.x) {
        float2 n = norm2(net, c);
        float scale = gradient_scale(net);  // as dz has it
        float mean = scale * float(net.sums->dz2[c] * net.share2);
        float mean_xhat = scale * float(net.sums->dz2_xhat[c] * net.share2);
        norm.direct[c] = net.weights->gamma2[c] * n.y;
        norm.slope[c] = -norm.direct[c] * n.y * mean_xhat;
        norm.constant[c] = -norm.direct[c] * mean - norm.slope[c] * n.x;
        norm.sign[c] = net.weights->gamma2[c] < 0 ? -1.0f : 1.0f;
    }
}

// Gradients of two channels at a window's four positions. The first of equal outputs is the one
// that was pooled.
__device__ inline void spread(pair (&dy)[4], const pair (&y)[4], pair dz, const Norm2Backward& norm,
                              int channel) {
    float2 value[4];
    float2 gradient = unpack(dz);
    for (int p = 0; p < 4; ++p)
        value[p] = unpack(y[p]);
    float result[4][2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        float v[4];
        float sign = norm.sign[channel + e];
        float g = norm.direct[channel + e] * (e ? gradient.y : gradient.x);
        for (int p = 0; p < 4; ++p)
            v[p] = e ? value[p].y : value[p].x;
        float best = sign * v[0];
        int taken = 0;
        for (int p = 1; p < 4; ++p)
            if (sign * v[p] > best) {
                best = sign * v[p];
                taken = p;
            }
        for (int p = 0; p < 4; ++p) {
            float everywhere = norm.slope[channel + e] * v[p] + norm.constant[channel + e];
            result[p][e] = everywhere + (p == taken ? g : 0.0f);
        }
    }
    for (int p = 0; p < 4; ++p)
        dy[p] = pack(result[p][0], result[p][1]);
}

// One image's gradients to shared memory, OUT channels from `first_out` on; y2 and dz2 are the
// image's. A thread takes 8 channels of a window at a time, and loads those of two windows before it
// computes, so that it waits for memory half as often.
template <int threads>
__device__ inline void form_dy(number* dy, const number* y2, const number* dz2, int first_out,
                               const Norm2Backward& norm) {
    constexpr int eights = OUT / 8;
    constexpr int items = WINDOWS2 * eights;
    for (int first = threadIdx.x; first < items; first += 2 * threads) {
        pair y[2][4][4], gradient[2][4];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            int i = min(first + r * threads, items - 1);
            int window = i / eights;
            int channel = first_out + i % eights * 8;
            load_eight(gradient[r], &dz2[window * C2 + channel]);
#pragma unroll
            for (int p = 0; p < 4; ++p)
                load_eight(y[r][p], &y2[(window * 4 + p) * C2 + channel]);
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            int i = first + r * threads;
            int window = i / eights;
            int channel = i % eights * 8;
            if (i >= items)
                break;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                pair four[4] = {y[r][0][k], y[r][1][k], y[r][2][k], y[r][3][k]};
                pair result[4];
                spread(result, four, gradient[r][k], norm, first_out + channel + k * 2);
                for (int p = 0; p < 4; ++p)
                    y[r][p][k] = result[p];
            }
#pragma unroll
            for (int p = 0; p < 4; ++p) {
                int pixel = place(window / W2 * 2 + p / 2, window % W2 * 2 + p % 2);
                number* to = &dy[pixel * PITCH_DY + channel];
                store_eight(to, y[r][p][0], y[r][p][1], y[r][p][2], y[r][p][3]);
            }
        }
    }
}

template <int threads>
__device__ inline void form_dy(const Network& net, number* dy, int image, int first_out,
                               const Norm2Backward& norm) {
    const number* y2 = &net.y2[size_t(image) * WINDOWS1 * C2];
    form_dy<threads>(dy, y2, &net.dz2[size_t(image) * FEATURES], first_out, norm);
}

// Bring the next image's share of y2 and dz2 nearer, from device memory to the L2 cache.
template <int threads>
__device__ inline void prefetch_dy(const Network& net, int image) {
    if (image >= net.batch)
        return;
    constexpr int line = 128 / sizeof(number);
    for (int i = threadIdx.x; i < WINDOWS1 * C2 / line; i += threads)
        prefetch(&net.y2[size_t(image) * WINDOWS1 * C2 + i * line]);
    for (int i = threadIdx.x; i < FEATURES / line; i += threads)
        prefetch(&net.dz2[size_t(image) * FEATURES + i * line]);
}

// ---- gradient of the input, and the first convolution
// The gradient of the pooled image is a convolution with the mirrored weights: rows are the 32
// input channels, columns the 196 windows of the first pooling, the sum goes over 9 taps x 64
// output channels. Of 8 warps, two share the windows of a quarter of the image and take 16 channels
// each.
constexpr int INPUT_THREADS = 256;
constexpr int INPUT_WARPS = INPUT_THREADS / 32;
constexpr int INPUT_SHARED =
    (TAPS * OUT * PITCH1 + DY_NUMBERS + PATCH_NUMBERS + CONV1_NUMBERS) * sizeof(number);

// One warp: 16 channels from `first_in` on at 8 `tiles` windows from `first_window` on; d[j]:
// windows 8 j ...
template <int tiles>
__device__ inline void input_gradient(float (&d)[tiles][4], const number* dy, const number* conv2,
                                      int first_in, int first_window) {
    int lane = threadIdx.x % 32;
    int at[tiles];
    for (int j = 0; j < tiles; ++j) {
        int window = min(first_window + j * 8 + lane % 8, WINDOWS1 - 1);
        int pixel = place(window / W1 + 1, window % W1 + 1);
        at[j] = pixel * PITCH_DY + lane / 8 * 8;
    }
    int out = lane / 16 * 8 + lane % 8;
    const number* column = &conv2[out * PITCH1 + first_in + lane / 8 % 2 * 8];
#pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
#pragma unroll
        for (int k = 0; k < OUT; k += 32) {
            pair a[2][4];
            for (int s = 0; s < 2; ++s)
                load_matrices_transposed(a[s], column + (tap * OUT + k + s * 16) * PITCH1);
#pragma unroll
            for (int j = 0; j < tiles; ++j) {
                pair b[4];
                load_matrices(b, dy + at[j] - (tap / 3 * ROW + tap % 3) * PITCH_DY + k);
                multiply_add(d[j], a[0], b[0], b[1]);
                multiply_add(d[j], a[1], b[2], b[3]);
            }
        }
    }
}

// Which of four outputs the first pooling took, if ReLU let it pass: 0 to 3, or 4.
__device__ inline int taken(const float (&y)[4][4], int e, float scale, float shift) {
    float best = scale * y[0][e] + shift;
    int position = 0;
#pragma unroll
    for (int p = 1; p < 4; ++p) {
        float z = scale * y[p][e] + shift;
        if (z > best) {
            best = z;
            position = p;
        }
    }
    return best > 0 ? position : 4;
}

// Two tiles of 8 windows: the first convolution again, to see which position each window took; then
// gradient times patch, summed over the 16 windows, apart for the four positions:
// g[position][half]: the lane's channels, pixels 8 half ...
template <int tiles>
__device__ inline void conv1_gradient(float (&g)[4][2][4], float (&sum)[2],
                                      const float (&d)[tiles][4], int j, const number* patches,
                                      const number* conv1, int first_in, int first_window,
                                      const float (&scale)[2], const float (&shift)[2]) {
    int lane = threadIdx.x % 32;
    pair window[4];  // the patches as columns: windows
    int column = min(first_window + lane / 16 * 8 + lane % 8, PATCH_ROWS - 1);
    load_matrices(window, &patches[half_row(column, lane / 8 % 2)]);
    pair pixels[4];  // and as rows
    int row = min(first_window + lane % 16, PATCH_ROWS - 1);
    load_matrices_transposed(pixels, &patches[half_row(row, lane / 16)]);
    float dz[2][4];
    float y[2][4][4] = {};
    int position[2][4];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        pair a[4];
        int channel = p * C1 + first_in + lane % 16;
        load_matrices(a, &conv1[half_row(channel, lane / 16)]);
        multiply_add(y[0][p], a, window[0], window[1]);
        multiply_add(y[1][p], a, window[2], window[3]);
    }
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            int own = first_window + t * 8 + lane % 4 * 2 + e % 2;
            bool inside = j + t < tiles && own < WINDOWS1;
            position[t][e] = inside ? taken(y[t], e, scale[e / 2], shift[e / 2]) : 4;
            dz[t][e] = position[t][e] < 4 ? d[j + t < tiles ? j + t : 0][e] : 0.0f;
            sum[e / 2] += dz[t][e];
        }
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        pair a[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            int t = q / 2;
            int e = q % 2 * 2;
            float first = position[t][e] == p ? dz[t][e] : 0.0f;
            float second = position[t][e + 1] == p ? dz[t][e + 1] : 0.0f;
            a[q] = pack(first, second);
        }
        multiply_add(g[p][0], a, pixels[0], pixels[1]);
        multiply_add(g[p][1], a, pixels[2], pixels[3]);
    }
}

// A warp's sums to its part of shared memory.
constexpr int SUM_CHANNELS = C1 / 2;  // of a warp
constexpr int SUM_PIXELS = 4 * SUM_CHANNELS * 16;
constexpr int WARP_SUMS = SUM_PIXELS + SUM_CHANNELS;
__device__ inline void store_conv1_sums(float* memory, const float (&g)[4][2][4],
                                        const float (&sum)[2]) {
    int lane = threadIdx.x % 32;
    float* mine = memory + threadIdx.x / 32 * WARP_SUMS;
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
        int channel = lane / 4 + e / 2 * 8;
#pragma unroll
        for (int p = 0; p < 4; ++p)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                int row = (p * SUM_CHANNELS + channel) * 16;
                float* to = &mine[row + half * 8 + lane % 4 * 2];
                float2 two = make_float2(g[p][half][e], g[p][half][e + 1]);
                *reinterpret_cast<float2*>(to) = two;
            }
        float gradient = sum_over_lanes(sum[e / 2], SAME_ROW);
        if (lane % 4 == 0)
            mine[SUM_PIXELS + channel] = gradient;
    }
}

// Add the warps' sums up, then to those of the batch; a tap is another pixel for each position.
__device__ inline void add_conv1_sums(const Network& net, const float* memory) {
    constexpr int channels = SUM_CHANNELS;
    constexpr int pixels = SUM_PIXELS;
    constexpr int all = WARP_SUMS;
    for (int i = threadIdx.x; i < C1 * TAPS; i += blockDim.x) {
        int channel = i / TAPS;
        int ky = i % TAPS / 3;
        int kx = i % 3;
        float total = 0;
        float gradient = 0;
        int first = channel / channels;
        for (int w = first; w < INPUT_WARPS; w += 2) {  // the warps that have this channel
            const float* from = memory + w * all;
            for (int p = 0; p < 4; ++p) {
                int pixel = (p / 2 + ky) * 4 + p % 2 + kx;
                total += from[(p * channels + channel % channels) * 16 + pixel];
            }
            gradient += from[pixels + channel % channels];
        }
        float unscale = 1 / gradient_scale(net);
        atomicAdd(&net.sums->dz1_patch[channel][i % TAPS], double(unscale * total));
        if (i % TAPS == 0)
            atomicAdd(&net.sums->dz1[channel], double(unscale * gradient));
    }
}

// Block (b, part, out) takes images b, b + gridDim.x ...; with two parts each block computes half
// of the windows. Of OUT_PARTS blocks each takes OUT output channels: what they sum up, and all
// that is made of it, adds up.
template <int parts>
__global__ void __launch_bounds__(INPUT_THREADS, BLOCKS) conv_backward_input(Network net) {
    constexpr int tiles = parts == 1 ? 7 : 4;
    extern __shared__ __align__(128) unsigned char memory[];
    number* dy = reinterpret_cast<number*>(memory);
    number* conv2 = dy + DY_NUMBERS;
    number* patches = conv2 + TAPS * OUT * PITCH1;
    number* conv1 = patches + PATCH_NUMBERS;
    __shared__ Norm2Backward norm;
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int first_in = warp % 2 * 16;
    int first_out = blockIdx.z * OUT;
    int first_window = (blockIdx.y * INPUT_WARPS + warp) / 2 * tiles * 8;
    load_conv1<false>(conv1, net.copies, INPUT_THREADS);
    for (int i = threadIdx.x; i < TAPS * OUT * 4; i += INPUT_THREADS) {
        number* to = &conv2[i / 4 * PITCH1 + i % 4 * 8];
        int tap = i / 4 / OUT;
        int out = first_out + i / 4 % OUT;
        const number* from = &net.copies->conv2[tap][out][i % 4 * 8];
        copy_eight_async(to, from);
    }
    commit_copies();
    clear(dy, DY_NUMBERS);
    const uint8_t* first_image = net.images + size_t(blockIdx.x) * PIXELS;
    build_patches(patches, first_image, threadIdx.x, INPUT_THREADS);
    wait_for_last_kernel();
    norm2_backward(net, norm);
    float scale[2];
    float shift[2];
    for (int i = 0; i < 2; ++i) {
        scale[i] = net.norm1->scale[first_in + i * 8 + lane / 4];
        shift[i] = net.norm1->shift[first_in + i * 8 + lane / 4];
    }
    wait_for_copies<0>();
    float sum[2] = {};
    float g[4][2][4] = {};
    for (int image = blockIdx.x; image < net.batch; image += gridDim.x) {
        __syncthreads();
        form_dy<INPUT_THREADS>(net, dy, image, first_out, norm);
        if (image != blockIdx.x) {
            const uint8_t* this_image = net.images + size_t(image) * PIXELS;
            build_patches(patches, this_image, threadIdx.x, INPUT_THREADS);
        }
        __syncthreads();
        prefetch_dy<INPUT_THREADS>(net, image + gridDim.x);
        float d[tiles][4] = {};
        input_gradient<tiles>(d, dy, conv2, first_in, first_window);
#pragma unroll
        for (int j = 0; j < tiles; j += 2) {
            int window = first_window + j * 8;
            conv1_gradient<tiles>(g, sum, d, j, patches, conv1, first_in, window, scale, shift);
        }
    }
    float* sums = reinterpret_cast<float*>(memory);
    __syncthreads();
    store_conv1_sums(sums, g, sum);
    __syncthreads();
    add_conv1_sums(net, sums);
}

// ---- gradient of the second convolution's weights
// dw[out][tap][in] = sum over places q of dy[q][out] * pooled[q + tap][in]. Both images have the
// same border, so the sum simply runs over all places from the first to the last: where dy is
// border it is zero.
constexpr int WEIGHT_THREADS = 256;
constexpr int WEIGHT_SHARED =
    (POOLED_NUMBERS + DY_NUMBERS + PATCH_NUMBERS + CONV1_NUMBERS) * sizeof(number);

// One warp: 16 `sixteens` output channels x 9 taps x 8 input channels; dw[tap][i]: output channels
// 16 i ...
template <int sixteens>
__device__ inline void weight_gradient(float (&dw)[TAPS][sixteens][4], const number* dy,
                                       const number* pooled, int first_out, int first_in) {
    int lane = threadIdx.x % 32;
    int first_place = ROW + 1 + lane / 16 * 8 + lane % 8;
    const number* row = &dy[first_place * PITCH_DY + first_out + lane / 8 % 2 * 8];
    int at[5];  // two taps each, the last one twice
    for (int i = 0; i < 5; ++i) {
        int tap = min(i * 2 + lane / 16, 8);
        int further = lane % 16 + tap / 3 * ROW + tap % 3;
        at[i] = further * PITCH1 + first_in;
    }
#pragma unroll 2
    for (int q = 0; q < 14; ++q) {
        pair a[sixteens][4];
        for (int i = 0; i < sixteens; ++i)
            load_matrices_transposed(a[i], row + q * 16 * PITCH_DY + i * 16);
#pragma unroll
        for (int tap = 0; tap < TAPS; tap += 2) {
            pair b[4];
            load_matrices_transposed(b, pooled + at[tap / 2] + q * 16 * PITCH1);
            for (int i = 0; i < sixteens; ++i) {
                multiply_add(dw[tap][i], a[i], b[0], b[1]);
                if (tap < 8)
                    multiply_add(dw[tap < 8 ? tap + 1 : 8][i], a[i], b[2], b[3]);
            }
        }
    }
}

// The partial sums of a block to device memory; a warp's channels from first_out and first_in on.
template <int sixteens>
__device__ inline void store_weight_gradient(const Network& net, int split,
                                             const float (&dw)[TAPS][sixteens][4], int first_out,
                                             int first_in) {
    int lane = threadIdx.x % 32;
    float unscale = 1 / gradient_scale(net);
    for (int tap = 0; tap < TAPS; ++tap)
        for (int i = 0; i < sixteens; ++i)
            for (int e = 0; e < 4; e += 2) {
                int out = first_out + i * 16 + lane / 4 + e * 4;
                size_t row = (size_t(split) * C2 + out) * TAPS + tap;
                float* to = &net.conv2_gradient[row * C1 + first_in + lane % 4 * 2];
                const float* two = &dw[tap][i][e];
                *reinterpret_cast<float2*>(to) = make_float2(unscale * two[0], unscale * two[1]);
            }
}

// Block (b, out) takes images b, b + gridDim.x ... and OUT output channels.
__global__ void __launch_bounds__(WEIGHT_THREADS, BLOCKS) conv_backward_weights(Network net) {
    extern __shared__ __align__(128) unsigned char memory[];
    number* pooled = reinterpret_cast<number*>(memory);
    number* dy = pooled + POOLED_NUMBERS;
    number* patches = dy + DY_NUMBERS;
    number* conv1 = patches + PATCH_NUMBERS;
    __shared__ Norm2Backward norm;
    __shared__ float scale[C1];
    __shared__ float shift[C1];
    int warp = threadIdx.x / 32;
    int first_out = blockIdx.y * OUT;
    int own_out = warp % 2 * (OUT / 2);  // behind first_out
    int first_in = warp / 2 * 8;
    load_conv1<true>(conv1, net.copies, WEIGHT_THREADS);
    commit_copies();
    clear(pooled, POOLED_NUMBERS + DY_NUMBERS);
    const uint8_t* first_image = net.images + size_t(blockIdx.x) * PIXELS;
    build_patches(patches, first_image, threadIdx.x, WEIGHT_THREADS);
    norm2_backward(net, norm);
    for (int c = threadIdx.x; c < C1; c += WEIGHT_THREADS) {
        scale[c] = net.norm1->scale[c];
        shift[c] = net.norm1->shift[c];
    }
    wait_for_copies<0>();
    float dw[TAPS][OUT / 32][4] = {};
    for (int image = blockIdx.x; image < net.batch; image += gridDim.x) {
        __syncthreads();
        form_dy<WEIGHT_THREADS>(net, dy, image, first_out, norm);
        conv1_pool<WEIGHT_THREADS / 32>(pooled, patches, conv1, scale, shift);
        __syncthreads();
        int next = image + gridDim.x;
        if (next < net.batch) {
            const uint8_t* next_image = net.images + size_t(next) * PIXELS;
            build_patches(patches, next_image, threadIdx.x, WEIGHT_THREADS);
        }
        prefetch_dy<WEIGHT_THREADS>(net, next);
        weight_gradient(dw, dy, pooled, own_out, first_in);
    }
    store_weight_gradient(net, blockIdx.x, dw, first_out + own_out, first_in);
}
