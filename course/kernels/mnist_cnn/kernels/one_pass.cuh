// Backward through both convolutions in one kernel: an image's gradient dy is formed once, in shared
// memory, and both gradients are made of it side by side: half of the warps take that of the second
// convolution's input, half that of its weights. The next image's values arrive meanwhile.
#pragma once
#include "conv_backward.cuh"

#ifdef ROOMY
constexpr int ONE_PASS_THREADS = 2 * INPUT_THREADS;
constexpr int ONE_PASS_WARPS = ONE_PASS_THREADS / 32;

struct OnePass {
    number dy[DY_NUMBERS];  // first: its place is taken by sums at the end
    number pooled[POOLED_NUMBERS];
    number conv2[TAPS * C2 * PITCH1];
    number conv1[CONV1_NUMBERS];
    number conv1_reordered[CONV1_NUMBERS];
    number patches[2][PATCH_NUMBERS];  // of this image and of the next one
    number y2[WINDOWS1 * C2];  // of the next image
    number dz2[FEATURES];
    Norm2Backward norm;
    float scale[C1];
    float shift[C1];
};

// Start copying `count` numbers, a multiple of eight, by the block's first `threads`.
template <int threads = ONE_PASS_THREADS>
__device__ inline void copy_numbers(number* to, const number* from, int count) {
    for (int i = threadIdx.x * 8; i < count; i += threads * 8)
        copy_eight_async(to + i, from + i);
}

// A barrier of all of a block's warps, from wherever each is in its own half of the work.
__device__ inline void meet() {
    asm volatile("bar.sync 1, %0;" ::"n"(ONE_PASS_THREADS) : "memory");
}

// An image's gradient and its pooled image, by all warps; then the next image's values are on their
// way.
__device__ inline void form_image(const Network& net, OnePass& m, int image, int parity) {
    wait_for_copies<0>();
    meet();
    form_dy<ONE_PASS_THREADS>(m.dy, m.y2, m.dz2, 0, m.norm);
    if (image != int(blockIdx.x))
        conv1_pool<ONE_PASS_WARPS>(m.pooled, m.patches[parity], m.conv1_reordered, m.scale,
                                   m.shift);
    meet();
    int next = image + gridDim.x;
    if (next < net.batch) {
        copy_numbers(m.y2, &net.y2[size_t(next) * WINDOWS1 * C2], WINDOWS1 * C2);
        copy_numbers(m.dz2, &net.dz2[size_t(next) * FEATURES], FEATURES);
    }
    commit_copies();
}

// The first half of the warps: the gradient of the second convolution's input, and on into the
// first convolution's sums, which they leave in shared memory.
template <int parts>
__device__ inline void take_input(const Network& net, OnePass& m, float* sums) {
    constexpr int tiles = parts == 1 ? 7 : 4;
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int first_in = warp % 2 * 16;
    int first_window = (blockIdx.y * INPUT_WARPS + warp) / 2 * tiles * 8;
    float scale[2];
    float shift[2];
    for (int i = 0; i < 2; ++i) {
        scale[i] = m.scale[first_in + i * 8 + lane / 4];
        shift[i] = m.shift[first_in + i * 8 + lane / 4];
    }
    float sum[2] = {};
    float g[4][2][4] = {};
    int parity = 0;
    for (int image = blockIdx.x; image < net.batch; image += gridDim.x) {
        form_image(net, m, image, parity);
        float d[tiles][4] = {};
        input_gradient<tiles>(d, m.dy, m.conv2, first_in, first_window);
#pragma unroll
        for (int j = 0; j < tiles; j += 2)
            conv1_gradient<tiles>(g, sum, d, j, m.patches[parity], m.conv1, first_in,
                                  first_window + j * 8, scale, shift);
        parity = 1 - parity;
    }
    meet();
    store_conv1_sums(sums, g, sum);
}

// The other half: the gradient of the second convolution's weights.
template <int parts>
__device__ inline void take_weights(const Network& net, OnePass& m) {
    constexpr int sixteens = C2 / 32 / parts;
    int warp = threadIdx.x / 32 - INPUT_WARPS;
    int first_out = (blockIdx.y * 2 + warp % 2) * sixteens * 16;
    int first_in = warp / 2 * 8;
    float dw[TAPS][sixteens][4] = {};
    int parity = 0;
    for (int image = blockIdx.x; image < net.batch; image += gridDim.x) {
        form_image(net, m, image, parity);
        weight_gradient<sixteens>(dw, m.dy, m.pooled, first_out, first_in);
        int next = image + gridDim.x;
        if (next < net.batch) {
            const uint8_t* next_image = net.images + size_t(next) * PIXELS;
            int thread = threadIdx.x - INPUT_THREADS;
            build_patches(m.patches[1 - parity], next_image, thread, INPUT_THREADS);
        }
        parity = 1 - parity;
    }
    meet();
    store_weight_gradient<sixteens>(net, blockIdx.x, dw, first_out, first_in);
}

// Block (b, part) takes images b, b + gridDim.x ...; with two parts each block takes half of the
// windows and half of the output channels.
template <int parts>
__global__ void __launch_bounds__(ONE_PASS_THREADS, 1) conv_backward(Network net) {
    extern __shared__ __align__(128) unsigned char memory[];
    OnePass& m = *reinterpret_cast<OnePass*>(memory);
    copy_numbers(m.y2, &net.y2[size_t(blockIdx.x) * WINDOWS1 * C2], WINDOWS1 * C2);
    load_conv1<true>(m.conv1_reordered, net.copies, ONE_PASS_THREADS);
    load_conv1<false>(m.conv1, net.copies, ONE_PASS_THREADS);
    for (int i = threadIdx.x; i < TAPS * C2 * 4; i += ONE_PASS_THREADS) {
        const number* from = &net.copies->conv2[0][0][0] + i * 8;
        copy_eight_async(&m.conv2[i / 4 * PITCH1 + i % 4 * 8], from);
    }
    commit_copies();
    const uint8_t* first_image = net.images + size_t(blockIdx.x) * PIXELS;
    build_patches(m.patches[0], first_image, threadIdx.x, ONE_PASS_THREADS);
    clear(m.dy, DY_NUMBERS + POOLED_NUMBERS);
    if (threadIdx.x < C1) {
        m.scale[threadIdx.x] = net.norm1->scale[threadIdx.x];
        m.shift[threadIdx.x] = net.norm1->shift[threadIdx.x];
    }
    wait_for_copies<0>();
    __syncthreads();
    float* sums = reinterpret_cast<float*>(m.dy);
    if (threadIdx.x < INPUT_THREADS) {
        wait_for_last_kernel();  // what comes before reads what the convolutions left
        let_next_kernel_begin();
        const number* dz2 = &net.dz2[size_t(blockIdx.x) * FEATURES];
        copy_numbers<INPUT_THREADS>(m.dz2, dz2, FEATURES);
        commit_copies();
        norm2_backward(net, m.norm);
        take_input<parts>(net, m, sums);
    } else {
        conv1_pool<INPUT_WARPS>(m.pooled, m.patches[0], m.conv1_reordered, m.scale, m.shift,
                                INPUT_WARPS);
        wait_for_last_kernel();
        let_next_kernel_begin();
        take_weights<parts>(net, m);
    }
    __syncthreads();
    add_conv1_sums(net, sums);
}
#endif
