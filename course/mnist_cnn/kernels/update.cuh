// The update of all parameters in one kernel: add up the partial gradients, take the step, write the copies for the tensor
// cores, and leave all sums at zero for the next step.
#pragma once
#include "network.cuh"

constexpr int UPDATE_THREADS = 256;
constexpr int CONV2_BLOCKS = C2 * 9 * C1 / 128, FC1_BLOCKS = HIDDEN * FEATURES / 4 / UPDATE_THREADS;
constexpr int UPDATE_BLOCKS = 1 + CONV2_BLOCKS + FC1_BLOCKS;

// One step of gradient descent for one parameter; gives its new value.
__device__ inline float descend(const Network& net, float* parameter, float gradient) {
  if (net.gradients) reinterpret_cast<float*>(net.gradients)[parameter - reinterpret_cast<float*>(net.weights)] = gradient;
  return *parameter -= net.rate * gradient;
}

__device__ inline void descend4(const Network& net, float* parameter, number* copy, const float4& gradient) {
  float4 now = *reinterpret_cast<float4*>(parameter);
  now.x -= net.rate * gradient.x, now.y -= net.rate * gradient.y;
  now.z -= net.rate * gradient.z, now.w -= net.rate * gradient.w;
  *reinterpret_cast<float4*>(parameter) = now;
  if (net.gradients)
    *reinterpret_cast<float4*>(&reinterpret_cast<float*>(net.gradients)[parameter - reinterpret_cast<float*>(net.weights)]) = gradient;
  store_pair(copy, pack(now.x, now.y));
  store_pair(copy + 2, pack(now.z, now.w));
}

__device__ inline float4 sum_of_partials(const float* from, size_t stride, int first, int end, int step) {
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
  for (int i = first; i < end; i += step) {
    float4 v = *reinterpret_cast<const float4*>(from + i * stride);
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  return sum;
}

// A block: 128 weights of the second convolution; 8 threads share the partial sums of each four.
__device__ inline void update_conv2(const Network& net, int block) {
  __shared__ __align__(16) float4 part[8][32];
  int lane = threadIdx.x % 32, share = threadIdx.x / 32, at = block * 128 + lane * 4;
  part[share][lane] = sum_of_partials(net.conv2_gradient + at, C2 * 9 * C1, share, net.conv2_splits, 8);
  __syncthreads();
  if (share) return;
  float4 sum = part[0][lane];
  for (int s = 1; s < 8; ++s) {
    float4 v = part[s][lane];
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  int channel = at / (9 * C1), tap = at / C1 % 9;
  descend4(net, &net.weights->conv2[0][0][0] + at, &net.copies->conv2[tap][channel][at % C1], sum);
}

__device__ inline void update_fc1(const Network& net, int block) {
  int at = (block * UPDATE_THREADS + threadIdx.x) * 4;
  float4 sum = sum_of_partials(net.fc1_gradient + at, size_t(HIDDEN) * FEATURES, 0, net.fc1_backward_splits, 1);
  descend4(net, &net.weights->fc1[0][0] + at, &net.copies->fc1[0][0] + at, sum);
}

__device__ inline void write_conv1_copies(Copies* copies, int channel, int tap, float weight) {
  for (int p = 0; p < 4; ++p) copies->conv1[p][channel][(p / 2 + tap / 3) * 4 + p % 2 + tap % 3] = to_number(weight);
}

// Sum of (y - mean) * inverse * pixel over the batch, for y = w . patch: from the moments again.
__device__ inline double xhat_times_pixel(const Network& net, int channel, int tap) {
  const number* w = net.copies->conv1[0][channel];
  double sum = 0;
  for (int t = 0; t < 9; ++t) sum += double(float(w[t / 3 * 4 + t % 3])) * net.norm1->moment[t][tap];
  return (sum - double(net.norm1->mean[channel]) * net.norm1->first[tap]) * double(net.norm1->inverse[channel]);
}

// Sum of dz1 * xhat over the batch: the gradient of gamma.
__device__ inline double gamma1_gradient(const Network& net, int channel) {
  const number* w = net.copies->conv1[0][channel];
  double sum = 0;
  for (int t = 0; t < 9; ++t) sum += double(float(w[t / 3 * 4 + t % 3])) * net.sums->dz1_patch[channel][t];
  return (sum - double(net.norm1->mean[channel]) * net.sums->dz1[channel]) * double(net.norm1->inverse[channel]);
}

// Batch norm's backward pass in the sums, not in the 784 x 32 gradients an image:
//   sum of dy * pixel = scale * (sum dz * pixel - mean(dz) * sum pixel - mean(dz * xhat) * sum xhat * pixel)
__device__ inline float conv1_weight_gradient(const Network& net, int channel, int tap) {
  double positions = double(net.batch) * PIXELS;
  double sum = net.sums->dz1_patch[channel][tap] - net.sums->dz1[channel] / positions * net.norm1->first[tap] -
               gamma1_gradient(net, channel) / positions * xhat_times_pixel(net, channel, tap);
  return float(sum * double(net.norm1->scale[channel]));
}

// One block: all small parameters, the loss, and zeros for the next step.
__device__ inline void update_small(const Network& net) {
  Parameters* w = net.weights;
  Sums* sums = net.sums;
  float conv1[2], gamma1 = 0;
  for (int r = 0; r < 2; ++r) {
    int i = threadIdx.x + r * UPDATE_THREADS;
    if (i < C1 * 9) conv1[r] = conv1_weight_gradient(net, i / 9, i % 9);
  }
  if (threadIdx.x < C1) gamma1 = float(gamma1_gradient(net, threadIdx.x));
  __syncthreads();  // everyone has read the old weights
  for (int r = 0; r < 2; ++r) {
    int i = threadIdx.x + r * UPDATE_THREADS;
    if (i < C1 * 9) write_conv1_copies(net.copies, i / 9, i % 9, descend(net, &w->conv1[i / 9][i % 9], conv1[r]));
  }
  int i = threadIdx.x;
  if (i < C1) {
    descend(net, &w->gamma1[i], gamma1);
    descend(net, &w->beta1[i], float(sums->dz1[i]));
  }
  if (i < C2) {
    descend(net, &w->gamma2[i], float(sums->dz2_xhat[i]));
    descend(net, &w->beta2[i], float(sums->dz2[i]));
  }
  if (i < HIDDEN) descend(net, &w->fc1_bias[i], float(sums->fc1_bias[i]));
  if (i < CLASSES) descend(net, &w->fc2_bias[i], float(sums->fc2_bias[i]));
  for (int k = i; k < CLASSES * HIDDEN; k += UPDATE_THREADS) descend(net, &w->fc2[0][0] + k, float((&sums->fc2[0][0])[k]));
  if (i == 0) net.losses[*net.step % LOSSES] = float(sums->loss), *net.step += 1;
  __syncthreads();
  for (int k = i; k < int(sizeof(Sums) / 8); k += UPDATE_THREADS) reinterpret_cast<double*>(sums)[k] = 0;
  for (int k = i; k < int(sizeof(Moments) / 8); k += UPDATE_THREADS) reinterpret_cast<double*>(net.moments)[k] = 0;
}

__global__ void __launch_bounds__(UPDATE_THREADS) update(Network net) {
  int block = blockIdx.x;
  if (block == 0) update_small(net);
  else if (block <= CONV2_BLOCKS) update_conv2(net, block - 1);
  else update_fc1(net, block - 1 - CONV2_BLOCKS);
}

// The copies of the initial weights; conv1's places outside of the 3 x 3 window must be zero before.
__global__ void __launch_bounds__(UPDATE_THREADS) make_copies(Network net) {
  int i = blockIdx.x * UPDATE_THREADS + threadIdx.x;
  const Parameters* w = net.weights;
  if (i < C1 * 9) write_conv1_copies(net.copies, i / 9, i % 9, w->conv1[i / 9][i % 9]);
  if (i < C2 * 9 * C1) net.copies->conv2[i / C1 % 9][i / (9 * C1)][i % C1] = to_number((&w->conv2[0][0][0])[i]);
  if (i < HIDDEN * FEATURES) (&net.copies->fc1[0][0])[i] = to_number((&w->fc1[0][0])[i]);
}
