// The two linear layers with the loss between forward and backward.
#pragma once
#include "network.cuh"

// ---- first linear layer, forward
// h[image][o] = sum over 3136 features of relu(norm(y2_best)) * w. A block: 64 images x all 128
// outputs, and a part of the sum (a split), because 3136 x 128 weights are many and blocks would be
// few.
constexpr int TILE = 64;  // images

// Rows in shared memory: 16 bytes more keep 8 rows in 8 banks.
constexpr int PITCH2 = C2 + 8;
constexpr int PITCH_HIDDEN = HIDDEN + 8;

constexpr int LINEAR_THREADS = 256;
constexpr int STAGE = (TILE + HIDDEN) * PITCH2;
constexpr int STAGES = SMALL ? 2 : 3;
constexpr int FC1_SHARED = STAGES * STAGE * sizeof(number);

// Start copying a chunk, the 64 features of one pooling window: of all 128 rows of weights ...
__device__ inline void copy_fc1_weights(const Network& net, number* stage, int window) {
    for (int i = threadIdx.x; i < HIDDEN * 8; i += LINEAR_THREADS) {
        int row = TILE + i / 8;
        number* to = &stage[row * PITCH2 + i % 8 * 8];
        const number* from = &net.copies->fc1[i / 8][window * C2 + i % 8 * 8];
        copy_eight_async(to, from);
    }
}
// ... and of 64 images; zeros past the batch.
__device__ inline void copy_features(const Network& net, number* stage, int first_image,
                                     int window) {
    for (int i = threadIdx.x; i < TILE * 8; i += LINEAR_THREADS) {
        int image = first_image + i / 8;
        int inside = min(image, net.batch - 1);
        const number* from = &net.y2_best[(size_t(inside) * WINDOWS2 + window) * C2 + i % 8 * 8];
        number* to = &stage[i / 8 * PITCH2 + i % 8 * 8];
        copy_eight_async(to, from, image < net.batch);
    }
}

// Batch norm and ReLU of two channels: scale, shift, scale, shift.
__device__ inline pair normalize(pair two, float4 scale_shift) {
    float2 y = unpack(two);
    float first = fmaxf(scale_shift.x * y.x + scale_shift.y, 0.0f);
    float second = fmaxf(scale_shift.z * y.y + scale_shift.w, 0.0f);
    return pack(first, second);
}

__global__ void __launch_bounds__(LINEAR_THREADS) fc1_forward(Network net) {
    extern __shared__ __align__(128) unsigned char memory[];
    number* stages = reinterpret_cast<number*>(memory);
    __shared__ __align__(16) float scale_shift[C2][2];
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int first_image = blockIdx.x * TILE;
    int split = blockIdx.y;
    int first = WINDOWS2 * split / net.fc1_splits;
    int end = WINDOWS2 * (split + 1) / net.fc1_splits;
    let_next_kernel_begin();
    for (int s = 0; s < STAGES - 1 && first + s < end; ++s)
        copy_fc1_weights(net, stages + s * STAGE, first + s);
    wait_for_last_kernel();
    for (int s = 0; s < STAGES - 1; ++s) {
        if (first + s < end)
            copy_features(net, stages + s * STAGE, first_image, first + s);
        commit_copies();
    }
    for (int c = threadIdx.x; c < C2; c += LINEAR_THREADS) {
        float2 norm = norm2(net, c);
        float scale = net.weights->gamma2[c] * norm.y;
        scale_shift[c][0] = scale;
        scale_shift[c][1] = net.weights->beta2[c] - norm.x * scale;
    }
    __syncthreads();
    float4 coefficients[4][2];  // a chunk has all 64 channels, so a lane meets the same 16 in each
    for (int k = 0; k < 4; ++k)
        for (int half = 0; half < 2; ++half) {
            float* channel = scale_shift[k * 16 + half * 8 + lane % 4 * 2];
            coefficients[k][half] = *reinterpret_cast<float4*>(channel);
        }

    float h[2][4][4] = {};  // a warp: 32 images x 32 outputs
    int row = warp % 2 * 32;
    int column = warp / 2 * 32;
    for (int window = first; window < end; ++window) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();
        int next = window + STAGES - 1;
        if (next < end) {
            number* free = stages + (next - first) % STAGES * STAGE;
            copy_fc1_weights(net, free, next);
            copy_features(net, free, first_image, next);
        }
        commit_copies();
        const number* stage = stages + (window - first) % STAGES * STAGE;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            pair a[2][4], b[2][4];
            for (int i = 0; i < 2; ++i) {
                int image = row + i * 16 + lane % 16;
                load_matrices(a[i], &stage[image * PITCH2 + k * 16 + lane / 16 * 8]);
                for (int e = 0; e < 4; ++e)
                    a[i][e] = normalize(a[i][e], coefficients[k][e / 2]);
            }
            for (int j = 0; j < 2; ++j) {
                int output = TILE + column + j * 16 + lane / 16 * 8 + lane % 8;
                load_matrices(b[j], &stage[output * PITCH2 + k * 16 + lane / 8 % 2 * 8]);
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) {
                    const pair* two = &b[j / 2][j % 2 * 2];
                    multiply_add(h[i][j], a[i], two[0], two[1]);
                }
        }
    }
    for (int i = 0; i < 2; ++i)
        for (int e = 0; e < 4; e += 2) {
            int image = first_image + row + i * 16 + lane / 4 + e * 4;
            if (image >= net.batch)
                continue;
            float* partial = &net.fc1_partial[(size_t(split) * net.batch + image) * HIDDEN];
            for (int j = 0; j < 4; ++j) {
                float* to = partial + column + j * 8 + lane % 4 * 2;
                *reinterpret_cast<float2*>(to) = make_float2(h[i][j][e], h[i][j][e + 1]);
            }
        }
}

// ---- bias, ReLU, second linear layer, softmax, cross-entropy, and all their gradients
// A warp takes an image; a lane has 4 of the 128 hidden values.
constexpr int HEAD_WARPS = 4;

__device__ inline float4 load4(const float* from) {
    return *reinterpret_cast<const float4*>(from);
}
__device__ inline float dot(float4 a, float4 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
__device__ inline void add_scaled(float4& sum, float s, float4 v) {
    sum.x += s * v.x;
    sum.y += s * v.y;
    sum.z += s * v.z;
    sum.w += s * v.w;
}
__device__ inline float4 relu(float4 h) {
    float x = fmaxf(h.x, 0.0f);
    float y = fmaxf(h.y, 0.0f);
    float z = fmaxf(h.z, 0.0f);
    float w = fmaxf(h.w, 0.0f);
    return make_float4(x, y, z, w);
}

// The hidden layer of one image: partial sums, bias, ReLU.
__device__ inline float4 hidden(const Network& net, int image, float4 bias) {
    float4 h = bias;
    const float* from = &net.fc1_partial[size_t(image) * HIDDEN + threadIdx.x % 32 * 4];
#pragma unroll 16
    for (int split = 0; split < net.fc1_splits; ++split)
        add_scaled(h, 1, load4(from + size_t(split) * net.batch * HIDDEN));
    return relu(h);
}

// What a lane of the head holds: 4 columns of the weights, and what it adds up over its images.
struct HeadLane {
    float4 w[CLASSES];
    float4 fc1_bias;
    float bias[CLASSES];
    float4 dw[CLASSES];
    float4 dfc1_bias;
    float dbias[CLASSES];
    float loss;
    float weight;  // of an image in the mean
};

// fc1_bias, fc2, fc2_bias: in global or in shared memory.
__device__ inline void begin_head(HeadLane& own, int batch, const float* fc1_bias, const float* fc2,
                                  const float* fc2_bias) {
    int lane = threadIdx.x % 32;
    own.fc1_bias = load4(&fc1_bias[lane * 4]);
    own.dfc1_bias = make_float4(0, 0, 0, 0);
    own.loss = 0;
    own.weight = 1.0f / batch;
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) {
        own.w[k] = load4(&fc2[k * HIDDEN + lane * 4]);
        own.bias[k] = fc2_bias[k];
        own.dw[k] = make_float4(0, 0, 0, 0);
        own.dbias[k] = 0;
    }
}

// An image's way through the head by a warp, from its hidden values (behind ReLU) to their gradient
// (in front of it).
__device__ inline float4 through_head(const Network& net, HeadLane& own, int image, int label,
                                      float4 h) {
    int lane = threadIdx.x % 32;
    float4 dh = make_float4(0, 0, 0, 0);
    float logit[CLASSES];
    float largest = -INFINITY;
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) {
        logit[k] = sum_over_lanes(dot(own.w[k], h), 31) + own.bias[k];
        largest = fmaxf(largest, logit[k]);
    }
    float sum = 0;
    float right = 0;
    float share[CLASSES];
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) {
        share[k] = expf(logit[k] - largest);
        sum += share[k];
        if (k == label)
            right = logit[k];
        if (lane == k)
            net.logits[size_t(image) * CLASSES + k] = logit[k];
    }
    own.loss += (logf(sum) + largest - right) * own.weight;
    float scale = own.weight / sum;
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) {
        float gradient = share[k] * scale - (k == label ? own.weight : 0.0f);
        add_scaled(own.dw[k], gradient, h);
        add_scaled(dh, gradient, own.w[k]);
        own.dbias[k] += gradient;
    }
    dh.x = h.x > 0 ? dh.x : 0;
    dh.y = h.y > 0 ? dh.y : 0;
    dh.z = h.z > 0 ? dh.z : 0;
    dh.w = h.w > 0 ? dh.w : 0;
    add_scaled(own.dfc1_bias, 1, dh);
    return dh;
}

// A lane's four gradients, as the next products take them.
__device__ inline void store_gradients(number* to, float scale, float4 dh) {
    store_pair(to, pack(scale * dh.x, scale * dh.y));
    store_pair(to + 2, pack(scale * dh.z, scale * dh.w));
}

constexpr int HEAD_TOTAL = (CLASSES + 2) * HIDDEN;  // floats of a warp, in rows as in HeadSums

// What the lanes of a warp hold, to its part of shared memory: in the place of what is there, or
// added to it.
__device__ inline void store_lane_sums(float* total, const HeadLane& own, bool added) {
    int lane = threadIdx.x % 32;
    auto keep = [&](int row, float4 v) {
        float4* to = reinterpret_cast<float4*>(&total[row * HIDDEN + lane * 4]);
        if (added)
            add_scaled(v, 1, *to);
        *to = v;
    };
#pragma unroll
    for (int k = 0; k < CLASSES; ++k)
        keep(k, own.dw[k]);
    keep(CLASSES, own.dfc1_bias);
    float last = lane == CLASSES ? own.loss : 0.0f;
#pragma unroll
    for (int k = 0; k < CLASSES; ++k)
        if (lane == k)
            last = own.dbias[k];
    float* to = &total[(CLASSES + 1) * HIDDEN + lane];
    *to = added ? *to + last : last;
}

// Add them up over the warps of the block; the update will add the blocks' sums up.
template <int warps>
__device__ inline void add_warp_sums(HeadSums& sums, const float* total) {
    __syncthreads();
    constexpr int count = (CLASSES + 1) * HIDDEN + 32;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        float sum = 0;
        for (int w = 0; w < warps; ++w)
            sum += total[w * HEAD_TOTAL + i];
        (&sums.fc2[0][0])[i] = sum;
    }
}

__global__ void __launch_bounds__(HEAD_WARPS * 32) head(Network net) {
    __shared__ __align__(16) float total[HEAD_WARPS * HEAD_TOTAL];
    let_next_kernel_begin();
    int lane = threadIdx.x % 32;
    HeadLane own;
    const Parameters* from = net.weights;
    begin_head(own, net.batch, from->fc1_bias, &from->fc2[0][0], from->fc2_bias);
    wait_for_last_kernel();
    int first = blockIdx.x * HEAD_WARPS + threadIdx.x / 32;
    for (int image = first; image < net.batch; image += gridDim.x * HEAD_WARPS) {
        int label = net.labels[image];
        float4 h = hidden(net, image, own.fc1_bias);
        float4 dh = through_head(net, own, image, label, h);
        number* to = &net.dh[size_t(image) * HIDDEN + lane * 4];
        store_gradients(to, gradient_scale(net), dh);
    }
    store_lane_sums(total + threadIdx.x / 32 * HEAD_TOTAL, own, false);
    add_warp_sums<HEAD_WARPS>(net.head_sums[blockIdx.x], total);
}

// ---- first linear layer, backward
// A block takes the 64 features of one pooling window, and the images of one split, 64 at a time.
// For them it computes the gradient of the features (64 images x 64 features, a sum over 128
// outputs), which goes back through ReLU, and the gradient of the weights (128 outputs x 64
// features, a sum over the images).
constexpr int FC1_BACKWARD_STAGE = TILE * (PITCH_HIDDEN + PITCH2);
constexpr int FC1_BACKWARD_STAGES = SMALL ? 1 : 2;  // with two the next tile comes early
constexpr int FC1_BACKWARD_SHARED =
    (HIDDEN * PITCH2 + FC1_BACKWARD_STAGES * FC1_BACKWARD_STAGE) * sizeof(number);

// Start copying 64 images' gradients of the hidden layer and their values of this window; zeros
// past the batch.
__device__ inline void copy_backward_tile(const Network& net, number* stage, int first_image,
                                          int window) {
    for (int i = threadIdx.x; i < TILE * 24; i += LINEAR_THREADS) {
        int image = first_image + i / 24;
        int part = i % 24;
        int inside = min(image, net.batch - 1);
        if (part < 16) {
            number* to = &stage[i / 24 * PITCH_HIDDEN + part * 8];
            const number* from = &net.dh[size_t(inside) * HIDDEN + part * 8];
            copy_eight_async(to, from, image < net.batch);
        } else {
            number* to = &stage[TILE * PITCH_HIDDEN + i / 24 * PITCH2 + (part - 16) * 8];
            size_t at = (size_t(inside) * WINDOWS2 + window) * C2 + (part - 16) * 8;
            copy_eight_async(to, &net.y2_best[at], image < net.batch);
        }
    }
    commit_copies();
}

// Gradient of the features, through ReLU; `y` becomes the features themselves.
__device__ inline void backward_features(const Network& net, const number* dh, number* y,
                                         const number* weights, int first_image, int window,
                                         const float4* norm, float (&sums)[8],
                                         float (&xhat_sums)[8]) {
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int row = warp % 4 * 16;
    int column = warp / 4 * 32;
    float d[4][4] = {};
#pragma unroll
    for (int k = 0; k < HIDDEN; k += 16) {
        pair a[4], b[2][4];
        load_matrices(a, &dh[(row + lane % 16) * PITCH_HIDDEN + k + lane / 16 * 8]);
        for (int j = 0; j < 2; ++j) {
            const number* output = &weights[(k + lane % 16) * PITCH2];
            load_matrices_transposed(b[j], output + column + j * 16 + lane / 16 * 8);
        }
        for (int j = 0; j < 4; ++j) {
            const pair* two = &b[j / 2][j % 2 * 2];
            multiply_add(d[j], a, two[0], two[1]);
        }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            int image = row + lane / 4 + i * 8;
            int channel = column + j * 8 + lane % 4 * 2;
            number* two = &y[image * PITCH2 + channel];
            float2 v = unpack(load_pair(two));
            float gradient[2] = {d[j][i * 2], d[j][i * 2 + 1]};
            float value[2] = {v.x, v.y};
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float4 n = norm[channel + e];  // mean, inverse, scale, shift
                float z = n.z * value[e] + n.w;
                gradient[e] = z > 0 ? gradient[e] : 0;
                sums[j * 2 + e] += gradient[e];
                xhat_sums[j * 2 + e] += gradient[e] * ((value[e] - n.x) * n.y);
                value[e] = fmaxf(z, 0.0f);
            }
            store_pair(two, pack(value[0], value[1]));
            if (first_image + image < net.batch) {
                size_t at = (size_t(first_image + image) * WINDOWS2 + window) * C2 + channel;
                store_pair(&net.dz2[at], pack(gradient[0], gradient[1]));
            }
        }
}

// Gradient of the weights, added to dw: dh transposed times features.
__device__ inline void backward_weights(float (&dw)[2][4][4], const number* dh,
                                        const number* features) {
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int row = warp % 4 * 32;
    int column = warp / 4 * 32;
#pragma unroll
    for (int k = 0; k < TILE; k += 16) {
        pair a[2][4], b[2][4];
        for (int i = 0; i < 2; ++i) {
            const number* image = &dh[(k + lane / 16 * 8 + lane % 8) * PITCH_HIDDEN];
            load_matrices_transposed(a[i], image + row + i * 16 + lane / 8 % 2 * 8);
        }
        for (int j = 0; j < 2; ++j) {
            const number* image = &features[(k + lane % 16) * PITCH2];
            load_matrices_transposed(b[j], image + column + j * 16 + lane / 16 * 8);
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j) {
                const pair* two = &b[j / 2][j % 2 * 2];
                multiply_add(dw[i][j], a[i], two[0], two[1]);
            }
    }
}

__global__ void __launch_bounds__(LINEAR_THREADS) fc1_backward(Network net) {
    extern __shared__ __align__(128) unsigned char memory[];
    number* weights = reinterpret_cast<number*>(memory);
    number* stages = weights + HIDDEN * PITCH2;
    __shared__ __align__(16) float4 norm[C2];
    __shared__ float total[2][4][C2];
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int window = blockIdx.x;
    int split = blockIdx.y;
    int tiles = (net.batch + TILE - 1) / TILE;
    int first = tiles * split / net.fc1_backward_splits;
    int end = tiles * (split + 1) / net.fc1_backward_splits;
    for (int i = threadIdx.x; i < HIDDEN * 8; i += LINEAR_THREADS) {
        number* to = &weights[i / 8 * PITCH2 + i % 8 * 8];
        const number* from = &net.copies->fc1[i / 8][window * C2 + i % 8 * 8];
        copy_eight_async(to, from);
    }
    wait_for_last_kernel();
    let_next_kernel_begin();  // not before: the next kernel reads what the convolutions left
    copy_backward_tile(net, stages, first * TILE, window);
    for (int c = threadIdx.x; c < C2; c += LINEAR_THREADS) {
        float2 n = norm2(net, c);
        float scale = net.weights->gamma2[c] * n.y;
        float shift = net.weights->beta2[c] - n.x * scale;
        norm[c] = make_float4(n.x, n.y, scale, shift);
    }
    float dw[2][4][4] = {};
    float sums[8] = {};
    float xhat_sums[8] = {};
    for (int tile = first; tile < end; ++tile) {
        number* dh = stages + (tile - first) % FC1_BACKWARD_STAGES * FC1_BACKWARD_STAGE;
        number* y = dh + TILE * PITCH_HIDDEN;
        wait_for_copies<0>();
        __syncthreads();  // this tile is there, and everyone is done with the last one
        bool more = tile + 1 < end;
        if (FC1_BACKWARD_STAGES > 1 && more) {
            number* free = stages + (tile + 1 - first) % 2 * FC1_BACKWARD_STAGE;
            copy_backward_tile(net, free, (tile + 1) * TILE, window);
        }
        backward_features(net, dh, y, weights, tile * TILE, window, norm, sums, xhat_sums);
        __syncthreads();
        backward_weights(dw, dh, y);
        if (FC1_BACKWARD_STAGES == 1 && more) {
            __syncthreads();
            copy_backward_tile(net, dh, (tile + 1) * TILE, window);
        }
    }
    float unscale = 1 / gradient_scale(net);

    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int e = 0; e < 4; e += 2) {
                int output = warp % 4 * 32 + i * 16 + lane / 4 + e * 4;
                int feature = window * C2 + warp / 4 * 32 + j * 8 + lane % 4 * 2;
                size_t at = (size_t(split) * HIDDEN + output) * FEATURES + feature;
                float2 two = make_float2(unscale * dw[i][j][e], unscale * dw[i][j][e + 1]);
                *reinterpret_cast<float2*>(&net.fc1_gradient[at]) = two;
            }
    for (int i = 0; i < 8; ++i) {
        float sum = sum_over_lanes(sums[i], SAME_COLUMNS);
        float xhat_sum = sum_over_lanes(xhat_sums[i], SAME_COLUMNS);
        int channel = warp / 4 * 32 + i / 2 * 8 + lane % 4 * 2 + i % 2;
        if (lane < 4) {
            total[0][warp % 4][channel] = unscale * sum;
            total[1][warp % 4][channel] = unscale * xhat_sum;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * C2; i += LINEAR_THREADS) {
        double sum = 0;
        for (int w = 0; w < 4; ++w)
            sum += total[i / C2][w][i % C2];
        double* to = i / C2 ? net.sums->dz2_xhat : net.sums->dz2;
        atomicAdd(&to[i % C2], sum);
    }
}
