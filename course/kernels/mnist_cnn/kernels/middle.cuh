// The network's middle in one kernel, for small batches: fc1 forward, the head, and fc1's gradient
// of its input. None of them needs anything of another image, so nothing makes the GPU wait for all
// of its blocks between them. Compute capability 9.0: seven blocks, a cluster, share some images.
//
// A block has the 448 features of seven pooling windows, and keeps their weights in shared memory,
// there before the convolutions are done. Where a sum goes over all features the blocks exchange
// what they have through each other's shared memory.
#pragma once
#include <cooperative_groups.h>
#include "linear.cuh"
#include "update.cuh"

#ifdef ROOMY

constexpr int CLUSTER = 7;
constexpr int CHUNK = FEATURES / CLUSTER;  // features of a block
constexpr int PITCH_CHUNK = CHUNK + 8;
constexpr int MIDDLE_MOST = 128;  // images: more keep the GPU busy with a kernel for each part
constexpr int MIDDLE_THREADS = 256;
constexpr int MIDDLE_WARPS = MIDDLE_THREADS / 32;

// For `group` images, a multiple of 8, at a time. Of these each block of a cluster takes a few
// through the head.
template <int group>
struct Middle {
    static constexpr int heads = (group + CLUSTER - 1) / CLUSTER;
    number weights[HIDDEN][PITCH_CHUNK];
    number y[group][PITCH_CHUNK];  // outputs of the second convolution, then their gradients
    number features[group][PITCH_CHUNK];
    float parts[CLUSTER][heads][HIDDEN];  // of hidden values: what each block of the cluster adds
    number dh[group][PITCH_HIDDEN];
    float4 norm[C2];  // mean, inverse, scale, shift
    float total[2][2][C2];
    float fc1_bias[HIDDEN];
    float fc2[CLASSES][HIDDEN];
    float fc2_bias[CLASSES + 6];
    float head_total[heads][HEAD_TOTAL];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
template <int group>
__global__ void middle(Network) {}  // without clusters it is never launched
#else
// The group's outputs that the pooling took, and what ReLU makes of them.
template <int group>
__device__ inline void load_middle(const Network& net, Middle<group>& m, int first_image,
                                   int first_feature) {
    constexpr int eights = CHUNK / 8;
    constexpr int rounds = (group * eights + MIDDLE_THREADS - 1) / MIDDLE_THREADS;
    pair eight[rounds][4];
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
        int i = min(int(threadIdx.x) + r * MIDDLE_THREADS, group * eights - 1);
        int image = min(first_image + i / eights, net.batch - 1);
        load_eight(eight[r],
                   &net.y2_best[size_t(image) * FEATURES + first_feature + i % eights * 8]);
    }
    for (int c = threadIdx.x; c < C2; c += MIDDLE_THREADS) {
        float2 n = norm2(net, c);
        float scale = net.weights->gamma2[c] * n.y;
        m.norm[c] = make_float4(n.x, n.y, scale, net.weights->beta2[c] - n.x * scale);
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
        int i = threadIdx.x + r * MIDDLE_THREADS;
        if (i >= group * eights)
            break;
        pair z[4];
        for (int k = 0; k < 4; ++k) {
            float4 first = m.norm[i % 8 * 8 + k * 2];
            float4 second = m.norm[i % 8 * 8 + k * 2 + 1];
            z[k] = normalize(eight[r][k], make_float4(first.z, first.w, second.z, second.w));
        }
        number* to = &m.y[i / eights][i % eights * 8];
        store_eight(to, eight[r][0], eight[r][1], eight[r][2], eight[r][3]);
        store_eight(&m.features[i / eights][i % eights * 8], z[0], z[1], z[2], z[3]);
    }
    __syncthreads();
}

// What this block's features add to the hidden values; a warp: 16 of them, for all images. Each
// goes to the block that takes its image through the head.
template <int group>
__device__ inline void middle_forward(Middle<group>& m) {
    auto cluster = cooperative_groups::this_cluster();
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    float h[2][group / 8][4] = {};  // apart for even and odd products, which so follow faster
    const number* row = &m.weights[warp * 16 + lane % 16][lane / 16 * 8];
#pragma unroll 7
    for (int k = 0; k < CHUNK; k += 32) {
        pair a[2][4];
        load_matrices(a[0], row + k);
        load_matrices(a[1], row + k + 16);
#pragma unroll
        for (int t = 0; t < group / 8; ++t) {
            pair b[4];
            load_matrices(b, &m.features[t * 8 + lane % 8][k + lane / 8 * 8]);
            multiply_add(h[0][t], a[0], b[0], b[1]);
            multiply_add(h[1][t], a[1], b[2], b[3]);
        }
    }
    int rank = cluster.block_rank();
    Fragment own = fragment_of(lane);
#pragma unroll
    for (int t = 0; t < group / 8; ++t)
        for (int e = 0; e < 4; ++e) {
            int image = t * 8 + own.column + e % 2;
            int output = warp * 16 + own.row + e / 2 * 8;
            float* here = &m.parts[rank][image / CLUSTER][output];
            *cluster.map_shared_rank(here, image % CLUSTER) = h[0][t][e] + h[1][t][e];
        }
}

// The block's images through the head, a warp each; their gradients to all blocks of the cluster.
// Leaves with the cluster's barrier begun.
template <int group>
__device__ inline void middle_head(const Network& net, Middle<group>& m, int first_image, int label,
                                   bool first) {
    auto cluster = cooperative_groups::this_cluster();
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int local = cluster.block_rank() + warp * CLUSTER;
    if (warp >= Middle<group>::heads || local >= group) {
        if (warp < Middle<group>::heads && first)
            for (int i = lane; i < HEAD_TOTAL; i += 32)
                m.head_total[warp][i] = 0;
        cluster.barrier_arrive();
        return;
    }
    int image = first_image + local;
    HeadLane own;
    begin_head(own, net.batch, m.fc1_bias, &m.fc2[0][0], m.fc2_bias);
    float4 dh = make_float4(0, 0, 0, 0);
    if (image < net.batch) {
        float4 h = own.fc1_bias;
        for (int r = 0; r < CLUSTER; ++r)
            add_scaled(h, 1, load4(&m.parts[r][warp][lane * 4]));
        dh = through_head(net, own, image, label, relu(h));
    }
    for (int r = 0; r < CLUSTER; ++r) {
        number* there = cluster.map_shared_rank(&m.dh[local][lane * 4], r);
        store_gradients(there, gradient_scale(net), dh);
    }
    cluster.barrier_arrive();
    if (image < net.batch)
        store_gradients(&net.dh[size_t(image) * HIDDEN + lane * 4], gradient_scale(net), dh);
    store_lane_sums(m.head_total[warp], own, !first);
}

// The gradient of the features, back through ReLU, in the place of y. A warp: every eighth 16
// features, which belong to the same channels.
template <int group>
__device__ inline void middle_backward(const Network& net, Middle<group>& m, int first_image,
                                       int first_feature, float (&sums)[2], float (&xhat_sums)[2]) {
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    Fragment own = fragment_of(lane);
    for (int tile = warp * 16; tile < CHUNK; tile += MIDDLE_WARPS * 16) {
        float d[group / 8][4] = {};
#pragma unroll
        for (int k = 0; k < HIDDEN; k += 32) {
            pair a[2][4];
            int output = k + lane / 16 * 8 + lane % 8;
            int column = tile + lane / 8 % 2 * 8;
            load_matrices_transposed(a[0], &m.weights[output][column]);
            load_matrices_transposed(a[1], &m.weights[output + 16][column]);
#pragma unroll
            for (int t = 0; t < group / 8; ++t) {
                pair b[4];
                load_matrices(b, &m.dh[t * 8 + lane % 8][k + lane / 8 * 8]);
                multiply_add(d[t], a[0], b[0], b[1]);
                multiply_add(d[t], a[1], b[2], b[3]);
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            int feature = tile + own.row + i * 8;
            float4 n = m.norm[feature % C2];
            for (int t = 0; t < group / 8; ++t)
                for (int e = 0; e < 2; ++e) {
                    number* y = &m.y[t * 8 + own.column + e][feature];
                    float value = float(*y);
                    float gradient = n.z * value + n.w > 0 ? d[t][i * 2 + e] : 0.0f;
                    sums[i] += gradient;
                    xhat_sums[i] += gradient * ((value - n.x) * n.y);
                    *y = to_number(gradient);
                }
        }
    }
    __syncthreads();
    constexpr int eights = CHUNK / 8;
    for (int i = threadIdx.x; i < group * eights; i += MIDDLE_THREADS) {
        int image = first_image + i / eights;
        if (image >= net.batch)
            break;
        pair eight[4];
        load_eight(eight, &m.y[i / eights][i % eights * 8]);
        number* to = &net.dz2[size_t(image) * FEATURES + first_feature + i % eights * 8];
        store_eight(to, eight[0], eight[1], eight[2], eight[3]);
    }
}

// Batch norm 2's sums over all images of the block, to those of the batch.
template <int group>
__device__ inline void add_middle_sums(const Network& net, Middle<group>& m, const float (&sums)[2],
                                       const float (&xhat_sums)[2]) {
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    float unscale = 1 / gradient_scale(net);
    for (int i = 0; i < 2; ++i) {
        float sum = sum_over_lanes(sums[i], SAME_ROW);
        float xhat_sum = sum_over_lanes(xhat_sums[i], SAME_ROW);
        int channel = warp % 4 * 16 + i * 8 + lane / 4;
        if (lane % 4 == 0) {
            m.total[0][warp / 4][channel] = unscale * sum;
            m.total[1][warp / 4][channel] = unscale * xhat_sum;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * C2; i += MIDDLE_THREADS) {
        double sum = double(m.total[i / C2][0][i % C2]) + m.total[i / C2][1][i % C2];
        double* to = i / C2 ? net.sums->dz2_xhat : net.sums->dz2;
        atomicAdd(&to[i % C2], sum);
    }
}

template <int group>
__global__ void __launch_bounds__(MIDDLE_THREADS, 2) middle(Network net) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto& m = *reinterpret_cast<Middle<group>*>(memory);
    auto cluster = cooperative_groups::this_cluster();
    int first_feature = cluster.block_rank() * CHUNK;
    cluster.barrier_arrive();
    for (int i = threadIdx.x; i < HIDDEN * CHUNK / 8; i += MIDDLE_THREADS) {
        int output = i / (CHUNK / 8);
        int feature = i % (CHUNK / 8) * 8;
        copy_eight_async(&m.weights[output][feature],
                         &net.copies->fc1[output][first_feature + feature]);
    }
    commit_copies();
    for (int i = threadIdx.x; i < CLASSES * HIDDEN; i += MIDDLE_THREADS)
        m.fc2[i / HIDDEN][i % HIDDEN] = net.weights->fc2[i / HIDDEN][i % HIDDEN];
    if (threadIdx.x < HIDDEN)
        m.fc1_bias[threadIdx.x] = net.weights->fc1_bias[threadIdx.x];
    if (threadIdx.x < CLASSES)
        m.fc2_bias[threadIdx.x] = net.weights->fc2_bias[threadIdx.x];
    float sums[2] = {};
    float xhat_sums[2] = {};
    wait_for_last_kernel();
    let_next_kernel_begin();  // not before: the next kernel reads what the convolutions left
    cluster.barrier_wait();  // all blocks of the cluster have begun: their memory is theirs
    int step = gridDim.x / CLUSTER * group;
    for (int first = blockIdx.x / CLUSTER * group; first < net.batch; first += step) {
        int of_head = first + cluster.block_rank() + threadIdx.x / 32 * CLUSTER;
        int label = net.labels[min(of_head, net.batch - 1)];  // of the warp's image in the head
        wait_for_copies<0>();
        load_middle(net, m, first, first_feature);
        middle_forward(m);
        cluster.sync();
        middle_head(net, m, first, label, first < step);
        cluster.barrier_wait();
        middle_backward(net, m, first, first_feature, sums, xhat_sums);
        __syncthreads();
    }
    if (blockIdx.x == 0 && threadIdx.x < C2)  // for the update
        net.norm2[threadIdx.x] = make_float2(m.norm[threadIdx.x].z, m.norm[threadIdx.x].w);
    add_middle_sums(net, m, sums, xhat_sums);
    add_warp_sums<Middle<group>::heads>(net.head_sums[blockIdx.x], &m.head_total[0][0]);
}

#endif

// ---- what the update does then
// A block: the gradient of half of fc1's outputs' weights for one pooling window, and at once their
// update.
constexpr int STEP_OUTPUTS = HIDDEN / 2;
constexpr int FC1_STEPS = WINDOWS2 * 2;
constexpr int PITCH_STEP = STEP_OUTPUTS + 8;
constexpr int FC1_STEP_SHARED = TILE * (PITCH_STEP + PITCH2) * sizeof(number);

// Start copying what 64 images have of it; zeros past the batch.
__device__ inline void copy_step_tile(const Network& net, number* dh, number* y, int first_image,
                                      int window, int first_output) {
    for (int i = threadIdx.x; i < TILE * 16; i += UPDATE_THREADS) {
        int image = first_image + i / 16;
        size_t inside = min(image, net.batch - 1);
        int part = i % 8 * 8;
        bool of_dh = i % 16 < 8;
        number* to = of_dh ? &dh[i / 16 * PITCH_STEP + part] : &y[i / 16 * PITCH2 + part];
        const number* from = of_dh ? &net.dh[inside * HIDDEN + first_output + part]
                                   : &net.y2_best[(inside * WINDOWS2 + window) * C2 + part];
        copy_eight_async(to, from, image < net.batch);
    }
    commit_copies();
}

__device__ inline void fc1_step(const Network& net, unsigned char* memory, int block) {
    number* dh = reinterpret_cast<number*>(memory);
    number* y = dh + TILE * PITCH_STEP;
    __shared__ float2 scale_shift[C2];  // of batch norm 2
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int window = block / 2;
    int outputs = block % 2 * STEP_OUTPUTS;
    int row = warp % 4 * 16;  // of a warp: 16 outputs x 32 features
    int column = warp / 4 * 32;
    copy_step_tile(net, dh, y, 0, window, outputs);
    Fragment own = fragment_of(lane);
    float* weights[2];
    float2 now[4][2];  // on their way while the gradient is computed
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        int output = outputs + row + own.row + half * 8;
        weights[half] = &net.weights->fc1[output][window * C2 + column + own.column];
        for (int j = 0; j < 4; ++j)
            now[j][half] = *reinterpret_cast<const float2*>(weights[half] + j * 8);
    }
    for (int c = threadIdx.x; c < C2; c += UPDATE_THREADS)
        scale_shift[c] = net.norm2[c];
    float dw[4][4] = {};
    for (int first = 0; first < net.batch; first += TILE) {
        if (first > 0)
            copy_step_tile(net, dh, y, first, window, outputs);
        wait_for_copies<0>();
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * C2 / 2; i += UPDATE_THREADS) {
            int channel = i % (C2 / 2) * 2;
            number* two = &y[i / (C2 / 2) * PITCH2 + channel];
            float2 a = scale_shift[channel];
            float2 b = scale_shift[channel + 1];
            store_pair(two, normalize(load_pair(two), make_float4(a.x, a.y, b.x, b.y)));
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k += 16) {
            pair a[4], b[2][4];
            int image = k + lane / 16 * 8 + lane % 8;
            load_matrices_transposed(a, &dh[image * PITCH_STEP + row + lane / 8 % 2 * 8]);
            for (int j = 0; j < 2; ++j) {
                const number* features = &y[(k + lane % 16) * PITCH2];
                load_matrices_transposed(b[j], features + column + j * 16 + lane / 16 * 8);
            }
            for (int j = 0; j < 4; ++j) {
                const pair* two = &b[j / 2][j % 2 * 2];
                multiply_add(dw[j], a, two[0], two[1]);
            }
        }
        __syncthreads();
    }
    float unscale = 1 / gradient_scale(net);
#pragma unroll
    for (int half = 0; half < 2; ++half)
        for (int j = 0; j < 4; ++j) {
            float* two = weights[half] + j * 8;
            float first = unscale * dw[j][half * 2];
            float second = unscale * dw[j][half * 2 + 1];
            first = descend_from(net, now[j][half].x, two, first);
            second = descend_from(net, now[j][half].y, two + 1, second);
            int output = outputs + row + own.row + half * 8;
            int feature = window * C2 + column + own.column + j * 8;
            store_pair(&net.copies->fc1[output][feature], pack(first, second));
        }
}

// The update in which fc1's gradient is computed. What needs nothing of the convolutions' backward
// pass does not wait for it.
constexpr int SMALL_BLOCKS = 1 + HEAD_ROWS;
__global__ void __launch_bounds__(UPDATE_THREADS) update_with_fc1(Network net) {
    extern __shared__ __align__(128) unsigned char memory[];
    int block = blockIdx.x;
    if (block < SMALL_BLOCKS)
        return update_block(net, block);
    block -= SMALL_BLOCKS;
    if (block < FC1_STEPS)
        return fc1_step(net, memory, block);
    update_conv2(net, block - FC1_STEPS);
}
#endif
