// Forward through both convolutions: from the image's bytes to the second convolution's outputs, in
// one kernel.
//
// The second convolution is an implicit matrix product: a row for each position of the image, a
// column for each output channel, and a sum over 9 taps x 32 input channels = 288. The matrix of
// the neighbourhoods is never built: row r at tap (ky, kx) is the pooled pixel that lies ky rows
// and kx columns further, and ldmatrix takes the address of every row.
#pragma once
#include "conv1.cuh"

// The pooled image and its border are 16 rows of 15 places and one more. The backward pass reads up
// to place 255.
constexpr int PLACES = 256;
constexpr int POOLED_NUMBERS = PLACES * PITCH1;

// Of these kernels on a multiprocessor at a time: what its shared memory holds.
constexpr int BLOCKS = SMALL ? 1 : 4 / sizeof(number);

// A warp: 8 of 49 pooling windows, 32 positions.
constexpr int FORWARD_WARPS = 7;
constexpr int FORWARD_THREADS = FORWARD_WARPS * 32;

template <int parts>
__host__ __device__ constexpr int forward_shared() {
    int weights = TAPS * C2 / parts * PITCH1 + CONV1_NUMBERS;
    int pixels = POOLED_NUMBERS + PATCH_NUMBERS;
    return (weights + pixels) * sizeof(number);
}

// Copy the second convolution's weights for `rows` output channels from `first` on, rows in the
// order of channel_of.
template <int rows>
__device__ inline void load_conv2_reordered(number* weights, const Copies* copies, int first) {
    for (int i = threadIdx.x; i < TAPS * rows * 4; i += FORWARD_THREADS) {
        int row = i / 4;
        int tap = row / rows;
        int channel = channel_of(first + row % rows);
        int in = i % 4 * 8;
        number* to = &weights[row * PITCH1 + in];
        const number* from = &copies->conv2[tap][channel][in];
        copy_eight_async(to, from);
    }
}

// One warp: 32 positions (8 windows) x 8 `columns` channels. y[i][j] is rows 16 i .. of columns
// 8 j ...
//
// Rows are dealt so that a lane ends up with all four positions of a window: product i's row r is
// window r % 8, upper or lower position r / 8, and left or right is i, swapped for windows 4 to 7:
// then 8 rows lie in 8 different banks.
template <int columns>
__device__ inline void conv2_windows(float (&y)[2][columns][4], const number* pooled,
                                     const number* weights, int first_window) {
    int lane = threadIdx.x % 32;
    int window = min(first_window + lane % 8, WINDOWS2 - 1);
    const number* row[2];
    for (int i = 0; i < 2; ++i) {
        int right = (lane % 8 / 4) ^ i;
        int x = window % W2 * 2 + right;
        int y = window / W2 * 2 + lane / 8 % 2;
        row[i] = &pooled[place(y - 1, x - 1) * PITCH1 + lane / 16 * 8];
    }
    int channel = lane / 16 * 8 + lane % 8;
    const number* column = &weights[channel * PITCH1 + lane / 8 % 2 * 8];
#pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
#pragma unroll
        for (int k = 0; k < C1; k += 16) {
            pair a[2][4];
            for (int i = 0; i < 2; ++i)
                load_matrices(a[i], row[i] + (tap / 3 * ROW + tap % 3) * PITCH1 + k);
#pragma unroll
            for (int j = 0; j < columns; j += 2) {
                pair b[4];
                load_matrices(b, column + (tap * columns + j) * 8 * PITCH1 + k);
                for (int i = 0; i < 2; ++i) {
                    multiply_add(y[i][j], a[i], b[0], b[1]);
                    multiply_add(y[i][j + 1], a[i], b[2], b[3]);
                }
            }
        }
    }
}

// Store a window's outputs, and of each channel the one that the pooling will take: batch norm is
// monotone, so that is the largest, or the smallest where gamma is negative. Adds up what batch
// norm needs.
template <int columns>
__device__ inline void store_window(const Network& net, const float (&y)[2][columns][4], int image,
                                    int window, int first_channel, const float* sign,
                                    float (&sums)[columns / 4][8],
                                    float (&squares)[columns / 4][8]) {
    int lane = threadIdx.x % 32;
    int swapped = lane / 4 / 4;
    size_t at = (size_t(image) * WINDOWS2 + window) * C2 + first_channel + lane % 4 * 8;
#pragma unroll
    for (int h = 0; h < columns / 4; ++h) {  // 8 channels in a row
        pair best[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float two[2];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float v0 = y[0][h * 4 + j][e];
                float v1 = y[1][h * 4 + j][e];
                float v2 = y[0][h * 4 + j][e + 2];
                float v3 = y[1][h * 4 + j][e + 2];
                float s = sign[first_channel + h * 32 + lane % 4 * 8 + j * 2 + e];
                float upper = fmaxf(s * v0, s * v1);
                float lower = fmaxf(s * v2, s * v3);
                two[e] = s * fmaxf(upper, lower);
                sums[h][j * 2 + e] += v0 + v1 + v2 + v3;
                squares[h][j * 2 + e] += v0 * v0 + v1 * v1 + v2 * v2 + v3 * v3;
            }
            best[j] = pack(two[0], two[1]);
        }
        store_eight(&net.y2_best[at + h * 32], best[0], best[1], best[2], best[3]);
#pragma unroll
        for (int p = 0; p < 4; ++p) {  // upper left, upper right ...
            int i = p % 2;
            int e = p / 2 * 2;
            size_t where = (size_t(image) * WINDOWS2 + window) * 4 + p / 2 * 2 + (i ^ swapped);
            pair two[4];
            for (int j = 0; j < 4; ++j)
                two[j] = pack(y[i][h * 4 + j][e], y[i][h * 4 + j][e + 1]);
            number* to = &net.y2[where * C2 + first_channel + h * 32 + lane % 4 * 8];
            store_eight(to, two[0], two[1], two[2], two[3]);
        }
    }
}

// One image from the learner's conv1_pool (sockets.cuh), [14][14][32].
__device__ inline void load_pooled(number* pooled, const float* image) {
    for (int i = threadIdx.x; i < WINDOWS1 * C1; i += FORWARD_THREADS) {
        int window = i / C1;
        int at = place(window / W1, window % W1);
        pooled[at * PITCH1 + i % C1] = to_number(image[i]);
    }
}

// Block (b, part) takes images b, b + gridDim.x ... and 64 / parts of the channels. `stored`: the
// pooled image comes from the learner's conv1_pool.
template <int parts, bool stored = false>
__global__ void __launch_bounds__(FORWARD_THREADS, BLOCKS) conv_forward(Network net) {
    constexpr int channels = C2 / parts;
    constexpr int columns = channels / 8;
    extern __shared__ __align__(128) unsigned char memory[];
    number* pooled = reinterpret_cast<number*>(memory);
    number* conv2 = pooled + POOLED_NUMBERS;
    number* patches = conv2 + TAPS * channels * PITCH1;
    number* conv1 = patches + PATCH_NUMBERS;
    __shared__ Norm1 norm;
    __shared__ float sign[C2];
    __shared__ float total[FORWARD_WARPS][2][channels];
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int first_channel = blockIdx.y * channels;

    let_next_kernel_begin();
    Norm1Inputs inputs = load_norm1_inputs(net);
    load_conv1<true>(conv1, net.copies, FORWARD_THREADS);
    const uint8_t* first_image = net.images + size_t(blockIdx.x) * PIXELS;
    if constexpr (!stored)
        build_patches(patches, first_image, threadIdx.x, FORWARD_THREADS);
    load_conv2_reordered<channels>(conv2, net.copies, first_channel);  // wanted last of all
    commit_copies();
    clear(pooled, POOLED_NUMBERS);
    for (int c = threadIdx.x; c < C2; c += FORWARD_THREADS)
        sign[c] = net.weights->gamma2[c] < 0 ? -1.0f : 1.0f;
    if constexpr (!stored) {
        norm1_from_moments(net, inputs, norm);
        if (blockIdx.x == 0 && blockIdx.y == 0)  // for the backward pass
            for (int i = threadIdx.x; i < int(sizeof(Norm1) / 8); i += FORWARD_THREADS)
                reinterpret_cast<double*>(net.norm1)[i] = reinterpret_cast<double*>(&norm)[i];
    }
    wait_for_copies<0>();

    float sums[columns / 4][8] = {};
    float squares[columns / 4][8] = {};
    for (int image = blockIdx.x; image < net.batch; image += gridDim.x) {
        __syncthreads();
        if constexpr (stored)
            load_pooled(pooled, net.pooled + size_t(image) * WINDOWS1 * C1);
        else
            conv1_pool<FORWARD_WARPS>(pooled, patches, conv1, norm.scale, norm.shift);
        __syncthreads();
        int next = image + gridDim.x;
        if (!stored && next < net.batch) {  // arrives while the tensor cores work
            const uint8_t* next_image = net.images + size_t(next) * PIXELS;
            build_patches(patches, next_image, threadIdx.x, FORWARD_THREADS);
        }
        float y[2][columns][4] = {};
        conv2_windows<columns>(y, pooled, conv2, warp * 8);
        int window = warp * 8 + lane / 4;
        if (window < WINDOWS2)
            store_window<columns>(net, y, image, window, first_channel, sign, sums, squares);
    }

    for (int i = 0; i < columns / 4 * 8; ++i) {
        float sum = sum_over_lanes(sums[i / 8][i % 8], SAME_COLUMNS);
        float square = sum_over_lanes(squares[i / 8][i % 8], SAME_COLUMNS);
        int channel = i / 8 * 32 + lane % 4 * 8 + i % 8;
        if (lane < 4) {
            total[warp][0][channel] = sum;
            total[warp][1][channel] = square;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * channels; i += FORWARD_THREADS) {
        double sum = 0;
        for (int w = 0; w < FORWARD_WARPS; ++w)
            sum += total[w][i / channels][i % channels];
        double* to = i / channels ? net.sums->y2_squared : net.sums->y2;
        atomicAdd(&to[first_channel + i % channels], sum);
    }
}
