// The first convolution with its batch norm, ReLU and pooling. Its 784 x 32 outputs an image are
// never stored: they are computed where they are needed, from the image.
//
// A pooling window needs four 3 x 3 neighbourhoods, which together are the 4 x 4 pixels around it:
// 16, just what a tensor core sums over. So an image is a matrix of 196 windows x 16 pixels, and
// the convolution is four products with it, one for each position in the window.
#pragma once
#include "network.cuh"

constexpr int PATCH_ROWS = 208;  // 196 windows, filled up to a multiple of 16
constexpr int PATCH_NUMBERS = PATCH_ROWS * 16;
constexpr int CONV1_NUMBERS = 4 * C1 * 16;

// Both matrices have rows of 16 numbers, in two halves of 16 bytes. Swapping the halves of every
// second group of four rows lets eight rows of the same half lie in different banks.
__device__ inline int half_row(int row, int half) {
    int swapped = half ^ (row >> 2 & 1);
    return row * 16 + swapped * 8;
}

// Where tap t of a 3 x 3 window lies in a patch of 4 x 4 pixels.
__device__ inline int pixel_of_tap(int t) {
    return t / 3 * 4 + t % 3;
}

// ---- patches
// The four pixels of row y that windows in column `window` of the pooled image see: they begin at
// column 2 * window - 1.
__device__ inline void four_pixels(float (&v)[4], const uint8_t* image, int y, int window) {
    const unsigned* row = reinterpret_cast<const unsigned*>(image) + y * (SIDE / 4);
    bool inside = unsigned(y) < SIDE;
    int word = (window + 1) / 2;  // the four bytes lie in this word and the one before
    unsigned before = inside && word > 0 ? row[word - 1] : 0;
    unsigned after = inside && word < SIDE / 4 ? row[word] : 0;
    unsigned bytes = __funnelshift_r(before, after, window % 2 ? 8 : 24);
    for (int k = 0; k < 4; ++k) {
        unsigned byte = bytes >> k * 8 & 255;
        // 0x4b000000 is 2^23 as a float; its lowest bits are worth 1
        float pixel = __uint_as_float(0x4b000000 | byte) - (8388608.0f + 33);
        v[k] = inside ? pixel : BORDER;
    }
    if (window == 0)
        v[0] = BORDER;
    if (window == W1 - 1)
        v[3] = BORDER;
}

// Write the patches of one image (global memory) to shared memory; rows past the last window become
// zeros. Two threads share a window: each writes two lines of four pixels.
__device__ inline void build_patches(number* patches, const uint8_t* image, int thread,
                                     int threads) {
    for (int i = thread; i < PATCH_ROWS * 2; i += threads) {
        int window = i / 2;
        int half = i % 2;
        int y = window / W1 * 2 - 1 + half * 2;
        float v[2][4] = {};
        if (window < WINDOWS1)
            for (int r = 0; r < 2; ++r)
                four_pixels(v[r], image, y + r, window % W1);
        number* to = &patches[half_row(window, half)];
        pair upper_left = pack(v[0][0], v[0][1]);
        pair upper_right = pack(v[0][2], v[0][3]);
        pair lower_left = pack(v[1][0], v[1][1]);
        pair lower_right = pack(v[1][2], v[1][3]);
        store_eight(to, upper_left, upper_right, lower_left, lower_right);
    }
}

// ---- batch norm 1 without the convolution
// The convolution is linear in the pixels: y = w . p for a patch p of 9. So the mean of y is
// w . mean(p), and the mean of y^2 is w' E[p p'] w. The 9 + 45 moments of the patches are the same
// for all 32 channels, and do not depend on the weights.

constexpr int MOMENT_WARPS = 8 / sizeof(number);

// Moments of the 4 x 4 patches of the whole batch: Q'Q for the matrix Q of all windows (a row a
// window, a column a pixel of its patch), a warp an image.
__global__ void __launch_bounds__(MOMENT_WARPS * 32) patch_moments(Network net) {
    __shared__ __align__(16) number patches[MOMENT_WARPS][PATCH_NUMBERS];
    __shared__ float total[MOMENT_WARPS][17][16];
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    float sums[3][4] = {};  // columns 0..7 and 8..15 of Q'Q; and Q' times ones
    const pair ones = pack(1, 1);
    int first = blockIdx.x * MOMENT_WARPS + warp;
    int together = gridDim.x * MOMENT_WARPS;
    for (int image = first; image < net.batch; image += together) {
        const uint8_t* pixels = net.images + size_t(image) * PIXELS;
        build_patches(patches[warp], pixels, lane, 32);
        __syncwarp();
        for (int row = 0; row < PATCH_ROWS; row += 16) {
            pair q[4];  // as a: Q transposed; its parts are also the b of Q itself
            int window = row + lane / 16 * 8 + lane % 8;
            int half = lane / 8 & 1;
            load_matrices_transposed(q, &patches[warp][half_row(window, half)]);
            multiply_add(sums[0], q, q[0], q[2]);
            multiply_add(sums[1], q, q[1], q[3]);
            multiply_add(sums[2], q, ones, ones);
        }
        __syncwarp();
    }
    for (int e = 0; e < 4; ++e) {
        int row = lane / 4 + e / 2 * 8;
        int column = lane % 4 * 2 + e % 2;
        total[warp][row][column] = sums[0][e];
        total[warp][row][column + 8] = sums[1][e];
        if (column == 0)
            total[warp][16][row] = sums[2][e];
    }
    __syncthreads();
    double* moments = &net.moments->product[0][0];  // `sum` follows `product`
    for (int i = threadIdx.x; i < 17 * 16; i += blockDim.x) {
        double sum = 0;
        for (int w = 0; w < MOMENT_WARPS; ++w)
            sum += total[w][i / 16][i % 16];
        atomicAdd(&moments[i], sum);
    }
}

// What a thread loads of what `norm1_from_moments` needs; early, because it takes a while to come.
constexpr int NORM1_ROUNDS = 2;  // weights of a thread
struct Norm1Inputs {
    double moment[4];
    number weight[NORM1_ROUNDS];
    float gamma;
    float beta;
};

// A tap is a different pixel of the patch for each of the four positions in a window. Row 9 is the
// first moments.
__device__ inline Norm1Inputs load_norm1_inputs(const Network& net) {
    Norm1Inputs in = {};
    int t = threadIdx.x;
    for (int r = 0; r < NORM1_ROUNDS; ++r) {
        int i = min(t + r * int(blockDim.x), C1 * TAPS - 1);
        in.weight[r] = net.copies->conv1[0][i / TAPS][pixel_of_tap(i % TAPS)];
    }
    int row = t / TAPS;
    int pixel = pixel_of_tap(t % TAPS);
    if (row <= TAPS)
        for (int p = 0; p < 4; ++p) {
            int shift = p / 2 * 4 + p % 2;
            in.moment[p] = row < TAPS
                               ? net.moments->product[pixel_of_tap(row) + shift][pixel + shift]
                               : net.moments->sum[pixel + shift];
        }
    in.gamma = net.weights->gamma1[t % C1];
    in.beta = net.weights->beta1[t % C1];
    return in;
}

// Mean and variance of each channel from the moments, by a whole block. Leaves everything in `norm`
// (shared memory).
__device__ inline void norm1_from_moments(const Network& net, const Norm1Inputs& in, Norm1& norm) {
    __shared__ double square[C1 * TAPS];
    __shared__ float w[C1 * TAPS];
    int t = threadIdx.x;
    for (int r = 0; r < NORM1_ROUNDS; ++r)
        if (t + r * blockDim.x < C1 * TAPS)
            w[t + r * blockDim.x] = float(in.weight[r]);
    if (t < (TAPS + 1) * TAPS) {
        double sum = 0;
        for (int p = 0; p < 4; ++p)
            sum += in.moment[p];
        double* to = t / TAPS < TAPS ? norm.moment[t / TAPS] : norm.first;
        to[t % TAPS] = sum;
    }
    __syncthreads();
    for (int i = t; i < C1 * TAPS; i += blockDim.x) {
        const float* channel = &w[i / TAPS * TAPS];
        double sum = 0;
        for (int b = 0; b < TAPS; ++b)
            sum += norm.moment[i % TAPS][b] * double(channel[b]);
        square[i] = sum * double(w[i]);
    }
    __syncthreads();
    for (int c = t; c < C1; c += blockDim.x) {
        double mean = 0;
        double variance = 0;
        for (int k = 0; k < TAPS; ++k) {
            mean += norm.first[k] * double(w[c * TAPS + k]);
            variance += square[c * TAPS + k];
        }
        if (!net.use_moments) {
            mean = net.sums->y1[c];
            variance = net.sums->y1_squared[c];
        }
        mean *= net.share1;
        variance = variance * net.share1 - mean * mean;
        double positive = variance > 0 ? variance : 0 * variance;  // NaN stays NaN
        float scaled = float(positive) * (PIXEL_SCALE * PIXEL_SCALE);
        norm.mean[c] = float(mean);
        norm.inverse[c] = rsqrtf(scaled + EPSILON) * PIXEL_SCALE;
        norm.scale[c] = in.gamma * norm.inverse[c];
        norm.shift[c] = in.beta - norm.mean[c] * norm.scale[c];
    }
    __syncthreads();
}

// ---- convolution, batch norm, ReLU, pooling
// The pooled image in shared memory has a border of zeros for the next convolution: one column
// between the rows serves as the right border of one and the left border of the next. A pixel's 32
// channels take 80 bytes instead of 64, so that 8 pixels whose places differ modulo 8 lie in
// different banks.
constexpr int ROW = 15;
constexpr int PITCH1 = 40;
__device__ inline int place(int y, int x) {
    return (y + 1) * ROW + x + 1;
}

// Which channel is row r of the weights in shared memory. A lane's results are two neighbouring
// columns of each product; in this order those of four products are 8 channels in a row, which it
// stores with one instruction.
__device__ inline int channel_of(int r) {
    int column = r % 8 / 2 * 8;
    int product = r / 8 * 2 % 8;
    int neighbour = r % 2;
    return column + product + neighbour + r / 32 * 32;
}

// Copy the weights to shared memory, with rows in the order of channel_of or as they are.
template <bool reorder>
__device__ inline void load_conv1(number* weights, const Copies* copies, int threads) {
    for (int i = threadIdx.x; i < 4 * C1 * 2; i += threads) {
        int row = i / 2;
        int half = i % 2;
        int channel = reorder ? channel_of(row % C1) : row % C1;
        number* to = &weights[half_row(row, half)];
        const number* from = &copies->conv1[row / C1][channel][half * 8];
        copy_eight_async(to, from);
    }
}

// From the patches to the pooled image in shared memory, by so many warps of the block, from
// first_warp on. Needs weights in the order of channel_of.
template <int warps>
__device__ inline void conv1_pool(number* pooled, const number* patches, const number* weights,
                                  const float* scale, const float* shift, int first_warp = 0) {
    int warp = threadIdx.x / 32 - first_warp;
    int lane = threadIdx.x % 32;
    for (int row = warp * 16; row < PATCH_ROWS; row += warps * 16) {
        pair a[4], result[2][4];
        load_matrices(a, &patches[half_row(row + lane % 16, lane / 16)]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {  // 16 of the 32 channels
            float y[4][2][4] = {};
#pragma unroll
            for (int position = 0; position < 4; ++position) {
                pair b[4];
                int first = position * C1 + half * 16;
                int channel = first + lane / 16 * 8 + lane % 8;
                load_matrices(b, &weights[half_row(channel, lane / 8 & 1)]);
                multiply_add(y[position][0], a, b[0], b[1]);
                multiply_add(y[position][1], a, b[2], b[3]);
            }
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                int channel = lane % 4 * 8 + half * 4 + j * 2;
                float z[4];
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    float s = scale[channel + e % 2];
                    float t = shift[channel + e % 2];
                    float upper = fmaxf(s * y[0][j][e] + t, s * y[1][j][e] + t);
                    float lower = fmaxf(s * y[2][j][e] + t, s * y[3][j][e] + t);
                    z[e] = fmaxf(fmaxf(upper, lower), 0.0f);
                }
                result[0][half * 2 + j] = pack(z[0], z[1]);
                result[1][half * 2 + j] = pack(z[2], z[3]);
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            int window = row + lane / 4 + i * 8;
            if (window < WINDOWS1) {
                int pixel = place(window / W1, window % W1);
                number* to = &pooled[pixel * PITCH1 + lane % 4 * 8];
                store_eight(to, result[i][0], result[i][1], result[i][2], result[i][3]);
            }
        }
    }
}

// ---- the plain way to batch norm 1's statistics, to compare with
// A pass over the convolution's outputs of the whole batch.
constexpr int STATISTICS_THREADS = 256;
__global__ void __launch_bounds__(STATISTICS_THREADS) conv1_statistics(Network net) {
    __shared__ __align__(16) number patches[PATCH_NUMBERS], weights[CONV1_NUMBERS];
    __shared__ float total[2][C1];
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    load_conv1<false>(weights, net.copies, STATISTICS_THREADS);
    commit_copies();
    for (int i = threadIdx.x; i < 2 * C1; i += STATISTICS_THREADS)
        total[i / C1][i % C1] = 0;
    wait_for_copies<0>();
    float sums[4][2] = {};  // of two channels in each of four products
    float squares[4][2] = {};
    for (int image = blockIdx.x; image < net.batch; image += gridDim.x) {
        const uint8_t* pixels = net.images + size_t(image) * PIXELS;
        __syncthreads();
        build_patches(patches, pixels, threadIdx.x, STATISTICS_THREADS);
        __syncthreads();
        for (int row = warp * 16; row < PATCH_ROWS; row += STATISTICS_THREADS / 2) {
            pair a[4];
            load_matrices(a, &patches[half_row(row + lane % 16, lane / 16)]);
            for (int position = 0; position < 4; ++position)
#pragma unroll
                for (int j = 0; j < 4; j += 2) {
                    pair b[4];
                    float y[2][4] = {};
                    int first = position * C1 + j * 8;
                    int channel = first + lane / 16 * 8 + lane % 8;
                    load_matrices(b, &weights[half_row(channel, lane / 8 & 1)]);
                    multiply_add(y[0], a, b[0], b[1]);
                    multiply_add(y[1], a, b[2], b[3]);
                    for (int i = 0; i < 2; ++i)  // rows past the last window are zeros
                        for (int e = 0; e < 4; ++e) {
                            sums[j + i][e % 2] += y[i][e];
                            squares[j + i][e % 2] += y[i][e] * y[i][e];
                        }
                }
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float sum = sum_over_lanes(sums[i / 2][i % 2], SAME_COLUMNS);
        float square = sum_over_lanes(squares[i / 2][i % 2], SAME_COLUMNS);
        int channel = i / 2 * 8 + lane % 4 * 2 + i % 2;
        if (lane < 4) {
            atomicAdd(&total[0][channel], sum);
            atomicAdd(&total[1][channel], square);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * C1; i += STATISTICS_THREADS) {
        double* to = i / C1 ? net.sums->y1_squared : net.sums->y1;
        atomicAdd(&to[i % C1], double(total[i / C1][i % C1]));
    }
}

// Fill shared memory with zeros, before the first image: the borders stay as they are from then on.
__device__ inline void clear(number* memory, int numbers) {
    for (int i = threadIdx.x; i < numbers / 8; i += blockDim.x)
        store_eight(memory + i * 8, {}, {}, {}, {});
}
