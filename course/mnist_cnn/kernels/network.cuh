// The network's sizes and what is kept in device memory between kernels.
#pragma once
#include <cstdint>
#include "tensor_core.cuh"

constexpr int SIDE = 28, PIXELS = SIDE * SIDE;  // an image
constexpr int C1 = 32, W1 = 14,
              WINDOWS1 = 196;  // after the first pooling: 32 channels, 14 x 14 pooling windows
constexpr int C2 = 64, W2 = 7, WINDOWS2 = 49;  // after the second one: 64 channels, 7 x 7 windows
constexpr int FEATURES = WINDOWS2 * C2;  // 3136, ordered [window][channel]
constexpr int HIDDEN = 128, CLASSES = 10;
constexpr float EPSILON = 1e-5f;  // of both batch norms

// A pixel x of 0..255 enters the network as (x / 255 - 0.1307) / 0.3081. The kernels compute with x
// - 33, an integer that bfloat16 holds exactly. What differs is a factor, PIXEL_SCALE, and a
// constant, which batch norm takes away again.
// The border of zeros around an image is, in these units, 0.1307 * 255 - 33.
constexpr float PIXEL_SCALE = 1.0f / (255 * 0.3081f),
                BORDER = 0.328125f;  // 0.3285 as bfloat16 has it

struct Parameters {  // and their gradients: all in float
    float conv1[C1][9], gamma1[C1], beta1[C1];
    float conv2[C2][9][C1], gamma2[C2], beta2[C2];  // [out][3 x 3][in]
    float fc1[HIDDEN][FEATURES], fc1_bias[HIDDEN];
    float fc2[CLASSES][HIDDEN], fc2_bias[CLASSES];
};

struct Copies {  // the weights as tensor cores take them, written by the update
    number conv1
        [4][C1]
        // for each of the 4 positions in a pooling window: the 3 x 3 weights in its 4 x 4 patch
        [16];
    number conv2[9][C2][C1];
    number fc1[HIDDEN][FEATURES];
};

struct
    // of the batch's 4 x 4 patches: sums of products and sums; in double, so that the order does
    // not matter
    Moments {
    double product[16][16], sum[16];
};

struct
    // batch norm 1 of this batch. `scale` and `shift` take the convolution's sum to gamma * xhat +
    // beta
    Norm1 {
    float mean[C1], inverse[C1], scale[C1], shift[C1];
    double moment[9][9], first[9];  // the moments by taps
};

struct Sums {  // what many blocks add to in a step; zero when it begins
    double y1[C1], y1_squared[C1];  // only if batch norm 1 does not use the moments
    double y2[C2], y2_squared[C2];  // for batch norm 2: of the second convolution's outputs
    double dz2[C2], dz2_xhat[C2];  // its backward pass: gradient, gradient times xhat
    double dz1[C1], dz1_patch[C1][9];  // gradient behind batch norm 1, and times the 9 pixels
};

struct HeadSums {  // what each block of `head` adds up, in rows of 128
    float fc2[CLASSES][HIDDEN], fc1_bias[HIDDEN], fc2_bias[CLASSES], loss,
        unused[HIDDEN - CLASSES - 1];
};

// Everything a kernel may need, passed by value.
struct Network {
    int batch;
    double share1, share2;  // 1 / (positions that batch norm 1 and 2 average over)
    int fc1_splits, fc1_backward_splits, conv2_splits,
        head_blocks;  // into how many partial sums these are divided
    const uint8_t *images, *labels;  // [batch][784], [batch]
    Parameters* weights;
    Parameters* gradients;  // null unless somebody wants to see them
    Copies* copies;
    Moments* moments;
    Norm1* norm1;
    Sums* sums;
    number* y2;  // [batch][49 windows][4 positions][64]: the second convolution's outputs
    number* y2_best;  // [batch][49][64]: of each window the one that the pooling takes
    float* fc1_partial;  // [fc1_splits][batch][128]
    float* logits;  // [batch][10]
    HeadSums* head_sums;  // [head_blocks]
    number* dh;  // [batch][128]: gradient behind the first linear layer
    number*
        // [batch][49][64]: gradient behind batch norm 2, at the position that the pooling took
        dz2;
    float* fc1_gradient;  // [fc1_backward_splits][128][3136]
    float* conv2_gradient;  // [conv2_splits][64][9][32]
    float* losses;  // of the last LOSSES steps
    unsigned* step;  // steps done
    float rate;  // learning rate
    bool use_moments;  // for batch norm 1; else `conv1_statistics` runs
};
constexpr int LOSSES = 1 << 16;

// Batch norm 2 of channel c: y -> (y - mean) * inverse.
__device__ inline float2 norm2(const Network& net, int c) {
    double mean = net.sums->y2[c] * net.share2,
           variance = net.sums->y2_squared[c] * net.share2 - mean * mean;
    return make_float2(float(mean),
                       rsqrtf(float(variance > 0 ? variance : 0 * variance) + EPSILON));
}
