// What stands between the learner's kernels (sockets.cuh), which take floats, and ours.
#pragma once
#include "conv1.cuh"
#include "conv_forward.cuh"

// Batch norm 1 for a kernel of its own, and conv1's weights as floats; one block.
__global__ void __launch_bounds__(FORWARD_THREADS) norm1_alone(Network net, float* weights) {
    __shared__ Norm1 norm;
    norm1_from_moments(net, load_norm1_inputs(net), norm);
    for (int i = threadIdx.x; i < int(sizeof(Norm1) / 8); i += FORWARD_THREADS)
        reinterpret_cast<double*>(net.norm1)[i] = reinterpret_cast<double*>(&norm)[i];
    for (int i = threadIdx.x; i < C1 * TAPS; i += FORWARD_THREADS)
        weights[i] = float(net.copies->conv1[0][i / TAPS][pixel_of_tap(i % TAPS)]);
}

// The hidden layer's values: partial sums, bias, ReLU.
__global__ void hidden_values(Network net, float* values) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= net.batch * HIDDEN)
        return;
    float h = net.weights->fc1_bias[i % HIDDEN];
    for (int split = 0; split < net.fc1_splits; ++split)
        h += net.fc1_partial[size_t(split) * net.batch * HIDDEN + i];
    values[i] = fmaxf(h, 0.0f);
}

// The gradients behind the hidden layer, as the next kernels take them.
__global__ void numbers_of_hidden(Network net, const float* gradients) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < net.batch * HIDDEN)
        net.dh[i] = to_number(gradient_scale(net) * gradients[i]);
}
