// The network's sizes and what is kept in device memory between kernels.
#pragma once
#include <cstdint>
#include "tensor_core.cuh"

// An image.
constexpr int SIDE = 28;
constexpr int PIXELS = SIDE * SIDE;

// After the first pooling: 32 channels, 14 x 14 pooling windows.
constexpr int C1 = 32;
constexpr int W1 = 14;
constexpr int WINDOWS1 = W1 * W1;

// After the second one: 64 channels, 7 x 7 windows.
constexpr int C2 = 64;
constexpr int W2 = 7;
constexpr int WINDOWS2 = W2 * W2;

constexpr int TAPS = 9;  // of a 3 x 3 convolution
constexpr int FEATURES = WINDOWS2 * C2;  // 3136, ordered [window][channel]
constexpr int HIDDEN = 128;
constexpr int CLASSES = 10;
constexpr float EPSILON = 1e-5f;  // of both batch norms

// A pixel x of 0..255 enters the network as (x / 255 - 0.1307) / 0.3081. The kernels compute with
// x - 33, an integer that bfloat16 holds exactly. What differs is a factor, PIXEL_SCALE, and a
// constant, which batch norm takes away again.
constexpr float PIXEL_SCALE = 1.0f / (255 * 0.3081f);

// The border of zeros around an image is, in these units, 0.1307 * 255 - 33 = 0.3285; this is it
// as bfloat16 has it.
constexpr float BORDER = 0.328125f;

// Compute capability 7.5, for which float16 is, has 64 KiB of shared memory a multiprocessor. There
// a block takes half of the second convolution's output channels, and two blocks share an image.
#ifdef FP16
constexpr bool SMALL = true;
#else
constexpr bool SMALL = false;
#endif
constexpr int OUT_PARTS = SMALL ? 2 : 1;
constexpr int OUT = C2 / OUT_PARTS;  // output channels of a block in the backward pass

// `middle` and `conv_backward` keep so much in shared memory that only bfloat16 has room there.
#if !defined(TF32) && !defined(FP16)
#define ROOMY
#endif

// The parameters, and their gradients: all in float.
struct Parameters {
    float conv1[C1][TAPS];
    float gamma1[C1];
    float beta1[C1];
    float conv2[C2][TAPS][C1];  // [out][3 x 3][in]
    float gamma2[C2];
    float beta2[C2];
    float fc1[HIDDEN][FEATURES];
    float fc1_bias[HIDDEN];
    float fc2[CLASSES][HIDDEN];
    float fc2_bias[CLASSES];
};

// The weights as tensor cores take them, written by the update.
struct Copies {
    // For each of the 4 positions in a pooling window: the 3 x 3 weights in its 4 x 4 patch.
    number conv1[4][C1][16];
    number conv2[TAPS][C2][C1];
    number fc1[HIDDEN][FEATURES];
};

// Of the batch's 4 x 4 patches: sums of products and sums; in double, so that the order does not
// matter.
struct Moments {
    double product[16][16];
    double sum[16];
};

// Batch norm 1 of this batch. `scale` and `shift` take the convolution's sum to
// gamma * xhat + beta.
struct Norm1 {
    float mean[C1];
    float inverse[C1];
    float scale[C1];
    float shift[C1];
    double moment[TAPS][TAPS];  // the moments by taps
    double first[TAPS];
};

// What many blocks add to in a step; zero when it begins.
struct Sums {
    double y1[C1];  // y1 only if batch norm 1 does not use the moments
    double y1_squared[C1];
    double y2[C2];  // for batch norm 2: of the second convolution's outputs
    double y2_squared[C2];
    double dz2[C2];  // its backward pass: gradient, gradient times xhat
    double dz2_xhat[C2];
    double dz1[C1];  // gradient behind batch norm 1, and times the 9 pixels
    double dz1_patch[C1][TAPS];
};

// What each block of `head` adds up, in rows of 128.
struct HeadSums {
    float fc2[CLASSES][HIDDEN];
    float fc1_bias[HIDDEN];
    float fc2_bias[CLASSES];
    float loss;
    float unused[HIDDEN - CLASSES - 1];
};

// Everything a kernel may need, passed by value.
struct Network {
    int batch;
    double share1;  // 1 / (positions that batch norm 1 averages over)
    double share2;  // and batch norm 2
    int fc1_splits;  // into how many partial sums these are divided
    int fc1_backward_splits;
    int conv2_splits;
    int head_blocks;
    const uint8_t* images;  // [batch][784]
    const uint8_t* labels;  // [batch]
    Parameters* weights;
    Parameters* gradients;  // null unless somebody wants to see them
    Copies* copies;
    Moments* moments;
    Norm1* norm1;
    float2* norm2;  // [64]: scale and shift of batch norm 2, from `middle`
    Sums* sums;
    number* y2;  // [batch][49 windows][4 positions][64]: the second convolution's outputs
    number* y2_best;  // [batch][49][64]: of each window the one that the pooling takes
    float* fc1_partial;  // [fc1_splits][batch][128]
    float* logits;  // [batch][10]
    HeadSums* head_sums;  // [head_blocks]
    number* dh;  // [batch][128]: gradient behind the first linear layer
    number* dz2;  // [batch][49][64]: gradient behind batch norm 2, where the pooling took it
    float* fc1_gradient;  // [fc1_backward_splits][128][3136]
    float* conv2_gradient;  // [conv2_splits][64][9][32]
    float* losses;  // of the last LOSSES steps
    unsigned* step;  // steps done
    float rate;  // learning rate
    bool use_moments;  // for batch norm 1; else `conv1_statistics` runs
    // Only where a kernel is the learner's (sockets.cuh):
    float* pooled;  // [batch][14][14][32]: what conv1_pool hands on
    float* conv1_weights;  // [32][9]: what it takes
    float* hidden;  // [batch][128]: what head takes
    float* head_out;  // [12 + batch][128]: what head hands on; begins with head_sums
};
constexpr int LOSSES = 1 << 16;

// What the gradients that tensor cores take are multiplied by. In float16 they would vanish: it
// ends at 6e-8, and the mean over a batch divides each gradient by the batch's size.
__device__ inline float gradient_scale([[maybe_unused]] const Network& net) {
#ifdef FP16
    return 64.0f * net.batch;
#else
    return 1;
#endif
}

// Batch norm 2 of channel c, y -> (y - mean) * inverse: mean and inverse.
__device__ inline float2 norm2(const Network& net, int c) {
    double mean = net.sums->y2[c] * net.share2;
    double variance = net.sums->y2_squared[c] * net.share2 - mean * mean;
    double positive = variance > 0 ? variance : 0 * variance;  // NaN stays NaN
    return make_float2(float(mean), rsqrtf(float(positive) + EPSILON));
}
