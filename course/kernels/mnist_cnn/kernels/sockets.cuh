// Sockets: four of the step's eight kernels can be yours, in CUDA C, with floats and plain pointers.
//
//     fast.Trainer(weights, batch, lr, mine={"head": "build/head.cu"})
//
// A socket is a kernel's name, its parameters and what it promises. All four are launched with
// blocks of 256 threads, and with any number of blocks: loop with the grid's stride.
//
//     patch_moments(double* moments, const unsigned char* images, int batch)
//         moments[17][16] is zero when the kernel begins. A pooling window sees 4 x 4 pixels q[0]
//         ... q[15]. Row a < 16, column b: the sum of q[a] * q[b] over all 14 x 14 windows of all
//         digits. Row 16, column b: the sum of q[b]. images[batch][28][28]; window (y, x) begins
//         at pixel (2 y - 1, 2 x - 1). A pixel counts as its byte - 33, outside as 0.328125.
//
//     conv1_pool(float* pooled, const unsigned char* images, const float* weights,
//                const float* scale, const float* shift, int batch)
//         Convolution 3 x 3, batch norm, ReLU and 2 x 2 pooling at once. pooled[batch][14][14][32],
//         weights[32][9], scale[32], shift[32]: batch norm makes scale * y + shift of an output y.
//         Pixels and border as in patch_moments.
//
//     head(float* out, const float* hidden, const float* w, const float* bias,
//          const unsigned char* labels, int batch)
//         The end of the network, forward and back. hidden[batch][128] is what the hidden layer
//         hands on behind its ReLU. Logits: w h + bias, w[10][128]; then softmax and the mean
//         cross-entropy. out[12 + batch][128] is zero when the kernel begins:
//             rows 0 ... 9     the gradient of w
//             row 10           the gradient of the hidden layer's bias: rows 12 ... added up
//             row 11           the gradient of bias (10 numbers), then the loss
//             row 12 + n       digit n's gradient in front of the ReLU: 0 where hidden is 0
//
//     update(float* weights, const float* parts, int count, int splits, float rate)
//         weights[i] -= rate * the sum of parts[s][i] over s; parts[splits][count]. `count` is a
//         multiple of 4, and all pointers begin at a multiple of 16 bytes.
#pragma once
#include <cstdint>
#include <cuda_runtime.h>

constexpr int SOCKET_THREADS = 256;

// How the trainer starts yours; null: it takes ours.
struct Sockets {
    cudaError_t (*patch_moments)(int blocks, cudaStream_t stream, double* moments,
                                 const uint8_t* images, int batch);
    cudaError_t (*conv1_pool)(int blocks, cudaStream_t stream, float* pooled, const uint8_t* images,
                              const float* weights, const float* scale, const float* shift,
                              int batch);
    cudaError_t (*head)(int blocks, cudaStream_t stream, float* out, const float* hidden,
                        const float* w, const float* bias, const uint8_t* labels, int batch);
    cudaError_t (*update)(int blocks, cudaStream_t stream, float* weights, const float* parts,
                          int count, int splits, float rate);
};
