// The transform, one step at a time: as a sum, a pass a launch, in one block, in one warp.
// Rows of n points lie one after another.
#include "complex.cuh"

// exp(-2 pi i k / n)
__device__ inline float2 root_of(int k, int n) {
    return unit_root(-static_cast<float>(k) / n);
}

// Thread i has result i: a sum of n terms. points: of all rows together.
__global__ void dft(const float2* in, float2* out, int n, long long points) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= points)
        return;
    const int k = i % n;
    const float2* row = in + (i - k);
    float2 sum = {0, 0};
    for (int j = 0, turned = 0; j < n; j++) {
        sum = sum + row[j] * root_of(turned, n);
        turned += k;  // j * k, less whole turns
        if (turned >= n)
            turned -= n;
    }
    out[i] = sum;
}

// One of log2(n) passes: thread i joins two points, n / 2 apart. done: 1, 2, 4 ... n / 2.
__global__ void fft_pass(const float2* in, float2* out, int n, int done, long long points) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= points / 2)
        return;
    const int half = n / 2, j = i % half, k = j % done;
    const long long row = i / half * n;
    const float2 a = in[row + j];
    const float2 b = in[row + j + half] * root_of(k, 2 * done);
    const long long to = row + 2 * j - k;
    out[to] = a + b;
    out[to + done] = a - b;
}

constexpr int POINTS = 256;  // that a block transforms

// All passes at once, by a block of 128 threads, between two rows of shared memory.
__global__ void fft_block(const float2* in, float2* out) {
    __shared__ float2 rows[2][POINTS];
    const int t = threadIdx.x, half = POINTS / 2;
    const long long start = static_cast<long long>(blockIdx.x) * POINTS;
    rows[0][t] = in[start + t];
    rows[0][t + half] = in[start + t + half];
    int now = 0;
    for (int done = 1; done < POINTS; done *= 2) {
        __syncthreads();
        const int k = t % done, to = 2 * t - k;
        const float2 a = rows[now][t];
        const float2 b = rows[now][t + half] * root_of(k, 2 * done);
        now = 1 - now;  // into the other row: nobody reads it
        rows[now][to] = a + b;
        rows[now][to + done] = a - b;
    }
    __syncthreads();
    out[start + t] = rows[now][t];
    out[start + t + half] = rows[now][t + half];
}

// 32 points a warp, one a lane, from lane to lane. The results come out in the order of the lanes'
// numbers read backwards, bit by bit.
__global__ void fft_warp(const float2* in, float2* out) {
    const long long start =
        (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / 32 * 32;
    const int lane = threadIdx.x % 32;
    float2 mine = in[start + lane];
    for (int step = 16; step > 0; step /= 2) {
        const float2 other = {__shfl_xor_sync(0xffffffff, mine.x, step),
                              __shfl_xor_sync(0xffffffff, mine.y, step)};
        if (lane & step)
            mine = (other - mine) * root_of(lane % step, 2 * step);
        else
            mine = mine + other;
    }
    out[start + (__brev(lane) >> 27)] = mine;
}
