// The second convolution alone, [n][14][14][32] to [n][14][14][64], and its gradients: the products
// of the training step between plain loads and stores, for whoever has the rest of the network
// elsewhere. Called by conv2.py.
#include "conv_backward.cuh"

// Start copying one image's numbers to shared memory, inside their border of zeros.
template <int channels, int pitch>
__device__ inline void load_image(number* to, const number* image) {
    constexpr int eights = channels / 8;
    for (int i = threadIdx.x; i < WINDOWS1 * eights; i += blockDim.x) {
        int pixel = i / eights;
        int channel = i % eights * 8;
        int at = place(pixel / W1, pixel % W1);
        copy_eight_async(&to[at * pitch + channel], &image[pixel * channels + channel]);
    }
}

// Start copying the weights w[64][9][32] to rows of a tap and an output channel; forward wants the
// channels in the order of channel_of.
template <bool reorder>
__device__ inline void load_weights(number* to, const number* w) {
    for (int i = threadIdx.x; i < TAPS * C2 * 4; i += blockDim.x) {
        int row = i / 4;
        int tap = row / C2;
        int in = i % 4 * 8;
        int out = reorder ? channel_of(row % C2) : row % C2;
        copy_eight_async(&to[row * PITCH1 + in], &w[(out * TAPS + tap) * C1 + in]);
    }
}

__device__ inline void wait_for_all_copies() {
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
}

// ---- forward
constexpr int COLUMNS = C2 / 8;

// A lane has 2 x 8 channels at the four positions of one window: see conv2_windows.
__device__ inline void store_positions(number* y, const float (&sum)[2][COLUMNS][4], int window) {
    int lane = threadIdx.x % 32;
    int swapped = lane / 16;
#pragma unroll
    for (int h = 0; h < COLUMNS / 4; ++h)
#pragma unroll
        for (int p = 0; p < 4; ++p) {  // upper left, upper right ...
            int i = p % 2;
            int e = p / 2 * 2;
            int row = window / W2 * 2 + p / 2;
            int column = window % W2 * 2 + (i ^ swapped);
            pair two[4];
            for (int j = 0; j < 4; ++j)
                two[j] = pack(sum[i][h * 4 + j][e], sum[i][h * 4 + j][e + 1]);
            number* to = &y[(row * W1 + column) * C2 + h * 32 + lane % 4 * 8];
            store_eight(to, two[0], two[1], two[2], two[3]);
        }
}

// Block b takes images b, b + gridDim.x ...
__global__ void __launch_bounds__(FORWARD_THREADS, BLOCKS)
    conv2_forward(number* y, const number* x, const number* w, int images) {
    extern __shared__ __align__(128) unsigned char memory[];
    number* weights = reinterpret_cast<number*>(memory);
    number* image = weights + TAPS * C2 * PITCH1;
    int warp = threadIdx.x / 32;
    int window = warp * 8 + threadIdx.x % 32 / 4;
    load_weights<true>(weights, w);
    clear(image, POOLED_NUMBERS);
    for (int n = blockIdx.x; n < images; n += gridDim.x) {
        __syncthreads();  // nobody reads the image before any more
        load_image<C1, PITCH1>(image, x + size_t(n) * WINDOWS1 * C1);
        wait_for_all_copies();
        float sum[2][COLUMNS][4] = {};
        conv2_windows<COLUMNS>(sum, image, weights, warp * 8);
        if (window < WINDOWS2)
            store_positions(y + size_t(n) * WINDOWS1 * C2, sum, window);
    }
}

// ---- gradient of the input
constexpr int QUARTER = 7;  // of an image's windows: so many times 8, to two warps

// A lane has two channels at two positions in a row: see input_gradient.
__device__ inline void hold_positions(number* held, const float (&d)[QUARTER][4], int first_in,
                                      int first_window) {
    Fragment own = fragment_of(threadIdx.x % 32);
#pragma unroll
    for (int j = 0; j < QUARTER; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            int position = first_window + j * 8 + own.column + e % 2;
            int channel = first_in + own.row + e / 2 * 8;
            held[position * PITCH1 + channel] = to_number(d[j][e]);
        }
}

// Block b takes images b, b + gridDim.x ... The results wait in the place of dy until they leave in
// rows of 16 bytes.
__global__ void __launch_bounds__(INPUT_THREADS, BLOCKS)
    conv2_data_gradient(number* dx, const number* dy, const number* w, int images) {
    extern __shared__ __align__(128) unsigned char memory[];
    number* weights = reinterpret_cast<number*>(memory);
    number* image = weights + TAPS * C2 * PITCH1;
    int warp = threadIdx.x / 32;
    int first_in = warp % 2 * 16;
    int first_window = warp / 2 * QUARTER * 8;
    load_weights<false>(weights, w);
    for (int n = blockIdx.x; n < images; n += gridDim.x) {
        __syncthreads();
        clear(image, DY_NUMBERS);
        __syncthreads();
        load_image<C2, PITCH_DY>(image, dy + size_t(n) * WINDOWS1 * C2);
        wait_for_all_copies();
        float d[QUARTER][4] = {};
        input_gradient<QUARTER>(d, image, weights, first_in, first_window);
        __syncthreads();
        hold_positions(image, d, first_in, first_window);
        __syncthreads();
        number* to = dx + size_t(n) * WINDOWS1 * C1;
        for (int i = threadIdx.x; i < WINDOWS1 * C1 / 8; i += INPUT_THREADS) {
            pair eight[4];
            load_eight(eight, &image[i / 4 * PITCH1 + i % 4 * 8]);
            store_eight(&to[i * 8], eight[0], eight[1], eight[2], eight[3]);
        }
    }
}

// ---- gradient of the weights
constexpr int WEIGHTS = C2 * TAPS * C1;
constexpr int SIXTEENS = OUT / 32;  // of the output channels of a warp

// Block b adds up images b, b + gridDim.x ... into parts[b][64][9][32].
__global__ void __launch_bounds__(WEIGHT_THREADS, BLOCKS)
    conv2_weights_gradient(float* parts, const number* dy, const number* x, int images) {
    extern __shared__ __align__(128) unsigned char memory[];
    number* inputs = reinterpret_cast<number*>(memory);
    number* outputs = inputs + POOLED_NUMBERS;
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int first_out = warp % 2 * (C2 / 2);
    int first_in = warp / 2 * 8;
    clear(inputs, POOLED_NUMBERS + DY_NUMBERS);
    float dw[TAPS][SIXTEENS][4] = {};
    for (int n = blockIdx.x; n < images; n += gridDim.x) {
        __syncthreads();
        load_image<C1, PITCH1>(inputs, x + size_t(n) * WINDOWS1 * C1);
        load_image<C2, PITCH_DY>(outputs, dy + size_t(n) * WINDOWS1 * C2);
        wait_for_all_copies();
        weight_gradient(dw, outputs, inputs, first_out, first_in);
    }
    float* own = parts + size_t(blockIdx.x) * WEIGHTS;
    for (int tap = 0; tap < TAPS; ++tap)
        for (int i = 0; i < SIXTEENS; ++i)
            for (int e = 0; e < 4; e += 2) {
                int out = first_out + i * 16 + lane / 4 + e * 4;
                float* to = &own[(out * TAPS + tap) * C1 + first_in + lane % 4 * 2];
                const float* two = &dw[tap][i][e];
                *reinterpret_cast<float2*>(to) = make_float2(two[0], two[1]);
            }
}

// dw = the sum of the parts. A block: 32 weights, and 8 threads for each.
constexpr int ADDERS = 8;
__global__ void __launch_bounds__(32 * ADDERS)
    conv2_add_parts(number* dw, const float* parts, int count) {
    __shared__ float sums[ADDERS][32];
    int column = threadIdx.x % 32;
    int row = threadIdx.x / 32;
    int weight = blockIdx.x * 32 + column;
    float sum = 0;
#pragma unroll 8
    for (int part = row; part < count; part += ADDERS)
        sum += parts[size_t(part) * WEIGHTS + weight];
    sums[row][column] = sum;
    __syncthreads();
    if (row > 0)
        return;
    for (int other = 1; other < ADDERS; ++other)
        sum += sums[other][column];
    dw[weight] = to_number(sum);
}
