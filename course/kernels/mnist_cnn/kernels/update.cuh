// The update of all parameters in one kernel: add up the partial gradients, take the step, write
// the copies for the tensor cores, and leave all sums at zero for the next step.
#pragma once
#include "network.cuh"

constexpr int UPDATE_THREADS = 256;
constexpr int CONV2_BLOCKS = C2 * TAPS * C1 / 128;
constexpr int FC1_BLOCKS = HIDDEN * FEATURES / 4 / UPDATE_THREADS;
constexpr int HEAD_ROWS = sizeof(HeadSums) / sizeof(float) / HIDDEN;
constexpr int UPDATE_BLOCKS = 1 + HEAD_ROWS + CONV2_BLOCKS + FC1_BLOCKS;

// Where the gradient of a parameter is kept, for those who want to see it.
__device__ inline float* kept_gradient(const Network& net, const float* parameter) {
    return reinterpret_cast<float*>(net.gradients) +
           (parameter - reinterpret_cast<const float*>(net.weights));
}

// One step of gradient descent for one parameter, which is `now`; gives its new value.
__device__ inline float descend_from(const Network& net, float now, float* parameter,
                                     float gradient) {
    if (net.gradients)
        *kept_gradient(net, parameter) = gradient;
    return *parameter = now - net.rate * gradient;
}
__device__ inline float descend(const Network& net, float* parameter, float gradient) {
    return descend_from(net, *parameter, parameter, gradient);
}

// For four parameters in a row, which are `now`; writes their copies, too.
__device__ inline void descend4(const Network& net, float* parameter, number* copy,
                                const float4& gradient, float4 now) {
    now.x -= net.rate * gradient.x;
    now.y -= net.rate * gradient.y;
    now.z -= net.rate * gradient.z;
    now.w -= net.rate * gradient.w;
    *reinterpret_cast<float4*>(parameter) = now;
    if (net.gradients)
        *reinterpret_cast<float4*>(kept_gradient(net, parameter)) = gradient;
    store_pair(copy, pack(now.x, now.y));
    store_pair(copy + 2, pack(now.z, now.w));
}

__device__ inline void descend4(const Network& net, float* parameter, number* copy,
                                const float4& gradient) {
    descend4(net, parameter, copy, gradient, *reinterpret_cast<float4*>(parameter));
}

__device__ inline void add(float4& sum, float4 v) {
    sum.x += v.x;
    sum.y += v.y;
    sum.z += v.z;
    sum.w += v.w;
}

// Four neighbouring sums over partial sums number `first`, `first + step` ..., `stride` floats
// apart.
__device__ inline float4 sum_of_partials(const float* from, size_t stride, int first, int end,
                                         int step) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int i = first; i < end; i += step)
        add(sum, *reinterpret_cast<const float4*>(from + i * stride));
    return sum;
}

// A block: sums of 128 neighbouring floats; 8 threads share the partial sums of each four. The
// first warp gets the result.
__device__ inline float4 sum_of_shares(const float* from, size_t stride, int count) {
    __shared__ __align__(16) float4 part[8][32];
    int lane = threadIdx.x % 32;
    int share = threadIdx.x / 32;
    part[share][lane] = sum_of_partials(from + lane * 4, stride, share, count, 8);
    __syncthreads();
    float4 sum = part[0][lane];
    for (int s = 1; s < 8; ++s)
        add(sum, part[s][lane]);
    return sum;
}

// A block: 128 weights of the second convolution.
__device__ inline void update_conv2(const Network& net, int block) {
    int at = block * 128 + threadIdx.x % 32 * 4;
    float* weight = &net.weights->conv2[0][0][0] + at;
    float4 now = *reinterpret_cast<float4*>(weight);
    wait_for_last_kernel();
    const float* partials = net.conv2_gradient + block * 128;
    float4 sum = sum_of_shares(partials, C2 * TAPS * C1, net.conv2_splits);
    if (threadIdx.x >= 32)
        return;
    int channel = at / (TAPS * C1);
    int tap = at / C1 % TAPS;
    number* copy = &net.copies->conv2[tap][channel][at % C1];
    descend4(net, weight, copy, sum, now);
}

// A thread: four weights of the first linear layer.
__device__ inline void update_fc1(const Network& net, int block) {
    int at = (block * UPDATE_THREADS + threadIdx.x) * 4;
    const float* partials = net.fc1_gradient + at;
    size_t stride = size_t(HIDDEN) * FEATURES;
    float4 sum = sum_of_partials(partials, stride, 0, net.fc1_backward_splits, 1);
    float* weight = &net.weights->fc1[0][0] + at;
    number* copy = &net.copies->fc1[0][0] + at;
    descend4(net, weight, copy, sum);
}

__device__ inline void write_conv1_copies(Copies* copies, int channel, int tap, float weight) {
    for (int p = 0; p < 4; ++p) {
        int row = p / 2 + tap / 3;
        int column = p % 2 + tap % 3;
        copies->conv1[p][channel][row * 4 + column] = to_number(weight);
    }
}

// The gradients of the first convolution and of batch norm 1, by a whole block. Batch norm's
// backward pass is done in the sums, not in the 784 x 32 gradients an image:
//   sum of dy * pixel = scale * (sum dz * pixel
//                                - mean(dz) * sum pixel
//                                - mean(dz * xhat) * sum xhat * pixel)
constexpr int ROUNDS = (C1 * TAPS + UPDATE_THREADS - 1) / UPDATE_THREADS;
__device__ inline void update_conv1(const Network& net) {
    __shared__ double moment[TAPS][TAPS];
    __shared__ double first[TAPS];
    __shared__ double w[C1][TAPS];
    __shared__ double dz_pixel[C1][TAPS];
    __shared__ double dz[C1];
    __shared__ double dz_xhat[C1];
    __shared__ float mean[C1];
    __shared__ float inverse[C1];
    __shared__ float scale[C1];
    const Norm1& norm = *net.norm1;
    int t = threadIdx.x;
    float now[ROUNDS];
    for (int r = 0; r < ROUNDS; ++r) {
        int i = min(t + r * UPDATE_THREADS, C1 * TAPS - 1);
        int c = i / TAPS;
        int tap = i % TAPS;
        now[r] = net.weights->conv1[c][tap];
        w[c][tap] = double(float(net.copies->conv1[0][c][tap / 3 * 4 + tap % 3]));
    }
    if (t < TAPS * TAPS)
        moment[t / TAPS][t % TAPS] = norm.moment[t / TAPS][t % TAPS];
    if (t < TAPS)
        first[t] = norm.first[t];
    float gamma = net.weights->gamma1[t % C1];
    float beta = net.weights->beta1[t % C1];
    if (t < C1) {
        mean[t] = norm.mean[t];
        inverse[t] = norm.inverse[t];
        scale[t] = norm.scale[t];
    }
    wait_for_last_kernel();  // what comes before was there before
    for (int i = t; i < C1 * TAPS; i += UPDATE_THREADS)
        dz_pixel[i / TAPS][i % TAPS] = net.sums->dz1_patch[i / TAPS][i % TAPS];
    if (t < C1)
        dz[t] = net.sums->dz1[t];
    __syncthreads();
    if (t < C1) {  // the gradients of gamma and beta
        double sum = 0;
        for (int k = 0; k < TAPS; ++k)
            sum += w[t][k] * dz_pixel[t][k];
        dz_xhat[t] = (sum - mean[t] * dz[t]) * inverse[t];
        descend_from(net, gamma, &net.weights->gamma1[t], float(dz_xhat[t]));
        descend_from(net, beta, &net.weights->beta1[t], float(dz[t]));
    }
    __syncthreads();
    for (int r = 0; r < ROUNDS; ++r) {
        int i = t + r * UPDATE_THREADS;
        if (i >= C1 * TAPS)
            break;
        int c = i / TAPS;
        int tap = i % TAPS;
        double xhat_pixel = -mean[c] * first[tap];
        for (int k = 0; k < TAPS; ++k)
            xhat_pixel += w[c][k] * moment[k][tap];
        xhat_pixel *= inverse[c];
        double gradient =
            dz_pixel[c][tap] - net.share1 * (dz[c] * first[tap] + dz_xhat[c] * xhat_pixel);
        float* parameter = &net.weights->conv1[c][tap];
        float weight = descend_from(net, now[r], parameter, float(gradient * scale[c]));
        write_conv1_copies(net.copies, c, tap, weight);
    }
}

// One block: the convolutions' small parameters, and zeros for the next step's sums.
__device__ inline void update_convolutions(const Network& net) {
    int i = threadIdx.x;
    float gamma = net.weights->gamma2[i % C2];
    float beta = net.weights->beta2[i % C2];
    double dgamma = net.sums->dz2_xhat[i % C2];
    double dbeta = net.sums->dz2[i % C2];
    update_conv1(net);
    if (i < C2) {
        descend_from(net, gamma, &net.weights->gamma2[i], float(dgamma));
        descend_from(net, beta, &net.weights->beta2[i], float(dbeta));
    }
    __syncthreads();
    for (int k = i; k < int(sizeof(Sums) / 8); k += UPDATE_THREADS)
        reinterpret_cast<double*>(net.sums)[k] = 0;
    for (int k = i; k < int(sizeof(Moments) / 8); k += UPDATE_THREADS)
        reinterpret_cast<double*>(net.moments)[k] = 0;
}

// A block: one row of HeadSums.
__device__ inline void update_head(const Network& net, int row) {
    const float* partials = &net.head_sums->fc2[0][0] + row * HIDDEN;
    size_t stride = sizeof(HeadSums) / sizeof(float);
    float4 sum = sum_of_shares(partials, stride, net.head_blocks);
    if (threadIdx.x >= 32)
        return;
    Parameters* w = net.weights;
    float four[4] = {sum.x, sum.y, sum.z, sum.w};
    for (int e = 0; e < 4; ++e) {
        int i = threadIdx.x * 4 + e;
        if (row < CLASSES) {
            descend(net, &w->fc2[row][i], four[e]);
        } else if (row == CLASSES) {
            descend(net, &w->fc1_bias[i], four[e]);
        } else if (i < CLASSES) {
            descend(net, &w->fc2_bias[i], four[e]);
        } else if (i == CLASSES) {  // behind the last bias stands the loss
            net.losses[*net.step % LOSSES] = four[e];
            *net.step += 1;
        }
    }
}

// Number `block` of the blocks of all parameters. Those of the linear layers need not wait for the
// convolutions.
__device__ inline void update_block(const Network& net, int block) {
    if (block == 0)
        return update_convolutions(net);
    if (--block < HEAD_ROWS)
        return update_head(net, block);
    if ((block -= HEAD_ROWS) < CONV2_BLOCKS)
        return update_conv2(net, block);
    update_fc1(net, block - CONV2_BLOCKS);
}

// All of them in one launch, or those from `first` on.
__global__ void __launch_bounds__(UPDATE_THREADS) update(Network net, int first) {
    update_block(net, blockIdx.x + first);
}

// All, as soon as each can.
__global__ void __launch_bounds__(UPDATE_THREADS) update_early(Network net) {
    update_block(net, blockIdx.x);
}

// The copies of the initial weights; conv1's places outside of the 3 x 3 window must be zero
// before.
__global__ void __launch_bounds__(UPDATE_THREADS) make_copies(Network net) {
    int i = blockIdx.x * UPDATE_THREADS + threadIdx.x;
    const Parameters* w = net.weights;
    if (i < C1 * TAPS) {
        float weight = w->conv1[i / TAPS][i % TAPS];
        write_conv1_copies(net.copies, i / TAPS, i % TAPS, weight);
    }
    if (i < C2 * TAPS * C1) {
        number copy = to_number((&w->conv2[0][0][0])[i]);
        net.copies->conv2[i / C1 % TAPS][i / (TAPS * C1)][i % C1] = copy;
    }
    if (i < HIDDEN * FEATURES)
        (&net.copies->fc1[0][0])[i] = to_number((&w->fc1[0][0])[i]);
}
