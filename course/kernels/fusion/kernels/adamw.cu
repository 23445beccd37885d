// AdamW over hundreds of tensors as one launch, and the norm of all their gradients as another.
//
// A table in memory says where each tensor lies; a second one cuts all of them into chunks of CHUNK
// numbers, a block each. So a launch is as long as its bytes, however many tensors there are.
// Source of the method: apex's and PyTorch's multi-tensor apply; Loshchilov and Hutter, "Decoupled
// weight decay regularization", 2019.
#include <cuda_bf16.h>

#ifndef THREADS
#define THREADS 256
#endif
#ifndef PACKS
#define PACKS 2  // accesses of 16 bytes that a thread has on their way in each array
#endif
#ifndef STREAMED
#define STREAMED 1  // whether what is used once goes past the caches
#endif
#ifndef BLOCKS
#define BLOCKS 4  // of an SM at a time
#endif

#define SHAPED __launch_bounds__(THREADS, BLOCKS)

constexpr int CHUNK = THREADS * PACKS * 4;

// A row of the table of tensors.
struct Tensor {
    float* weights;
    float* mean;  // of the gradients: Adam's m
    float* square;  // of their squares: Adam's v
    const void* gradient;
    __nv_bfloat16* copy;  // the weights that the network computes with, or null: then these
    long long count;
};

// What is the same for all numbers of a step.
struct Step {
    float rate, decay, beta1, beta2, epsilon;
    float correction1, correction2;  // 1 - beta1^step, sqrt(1 - beta2^step)
    float factor;  // of the gradients, so that their norm is at most the one asked for
};

__device__ inline float4 load4(const float* from) {
    return STREAMED ? __ldcs((const float4*)from) : *(const float4*)from;
}

__device__ inline float4 load4(const __nv_bfloat16* from) {
    uint2 bits = STREAMED ? __ldcs((const uint2*)from) : *(const uint2*)from;
    return make_float4(__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u),
                       __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000u));
}

__device__ inline void store4(float* to, float4 four) {
    if (STREAMED)
        __stcs((float4*)to, four);
    else
        *(float4*)to = four;
}

__device__ inline float number(float v) {
    return v;
}
__device__ inline float number(__nv_bfloat16 v) {
    return __bfloat162float(v);
}

// One weight's step: PyTorch's order of operations.
__device__ inline void update(float& w, float& m, float& v, float g, const Step& s) {
    g *= s.factor;
    w -= s.rate * s.decay * w;
    m += (1 - s.beta1) * (g - m);
    v = s.beta2 * v + (1 - s.beta2) * g * g;
    w -= s.rate / s.correction1 * m / (sqrtf(v) / s.correction2 + s.epsilon);
}

__device__ inline void update4(float4& w, float4& m, float4& v, float4 g, const Step& s) {
    update(w.x, m.x, v.x, g.x, s);
    update(w.y, m.y, v.y, g.y, s);
    update(w.z, m.z, v.z, g.z, s);
    update(w.w, m.w, v.w, g.w, s);
}

__device__ inline void store_copy(__nv_bfloat16* to, float4 four) {
    __nv_bfloat162 two[2] = {__floats2bfloat162_rn(four.x, four.y),
                             __floats2bfloat162_rn(four.z, four.w)};
    *(uint2*)to = *(uint2*)two;
}

// A whole chunk: all loads first, then the arithmetic, then all stores.
template <typename Gradient>
__device__ void whole_chunk(const Tensor& t, long long start, const Step& s) {
    const Gradient* gradient = (const Gradient*)t.gradient;
    float4 w[PACKS], m[PACKS], v[PACKS], g[PACKS];
    start += threadIdx.x * 4;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        long long at = start + i * THREADS * 4;
        w[i] = load4(t.weights + at);
        m[i] = load4(t.mean + at);
        v[i] = load4(t.square + at);
        g[i] = load4(gradient + at);
    }
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        long long at = start + i * THREADS * 4;
        update4(w[i], m[i], v[i], g[i], s);
        store4(t.weights + at, w[i]);
        store4(t.mean + at, m[i]);
        store4(t.square + at, v[i]);
        if (t.copy)
            store_copy(t.copy + at, w[i]);
    }
}

// A tensor's last chunk, number by number.
template <typename Gradient>
__device__ void rest(const Tensor& t, long long start, const Step& s) {
    const Gradient* gradient = (const Gradient*)t.gradient;
    for (long long i = start + threadIdx.x; i < t.count; i += THREADS) {
        update(t.weights[i], t.mean[i], t.square[i], number(gradient[i]), s);
        if (t.copy)
            t.copy[i] = __float2bfloat16(t.weights[i]);
    }
}

// tensors: rows of `Tensor`. chunks: (tensor, chunk of it), a block each. clip: what
// `gradient_norm` wrote, or null.
template <typename Gradient>
__global__ void SHAPED adamw(const long long* tensors, const int* chunks, const float* clip,
                             float rate, float decay, float beta1, float beta2, float epsilon,
                             float correction1, float correction2) {
    const Tensor& t = ((const Tensor*)tensors)[chunks[blockIdx.x * 2]];
    long long start = (long long)chunks[blockIdx.x * 2 + 1] * CHUNK;
    Step s = {rate, decay, beta1, beta2, epsilon, correction1, correction2, 1};
    if (clip)
        s.factor = clip[1];
    if (start + CHUNK <= t.count)
        whole_chunk<Gradient>(t, start, s);
    else
        rest<Gradient>(t, start, s);
}

// ---- the norm of all gradients

__device__ inline float sum_of_block(float v) {
    __shared__ float of_warps[THREADS / 32];
    for (int lanes = 16; lanes > 0; lanes /= 2)
        v += __shfl_xor_sync(~0u, v, lanes);
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int warp = 0; warp < THREADS / 32; ++warp)
        v += of_warps[warp];
    __syncthreads();
    return v;
}

// This thread's share of a chunk's sum of squares.
template <typename Gradient>
__device__ float squares_of_chunk(const Tensor& t, long long start) {
    const Gradient* gradient = (const Gradient*)t.gradient;
    long long end = min(start + CHUNK, t.count);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
        long long at = start + (i * THREADS + threadIdx.x) * 4;
        if (at + 4 <= end) {
            float4 g = load4(gradient + at);
            sum += g.x * g.x + g.y * g.y + g.z * g.z + g.w * g.w;
        }
    }
    long long at = end / 4 * 4 + threadIdx.x;  // a chunk begins at a multiple of 4
    if (at < end)
        sum += number(gradient[at]) * number(gradient[at]);
    return sum;
}

// Writes the norm and the factor that makes it `most` if it is larger. A block takes every
// gridDim.x-th chunk; whichever is the last adds up all blocks' sums, always in the same order.
// partial: a number a block. arrived: 0 before and after.
template <typename Gradient>
__global__ void __launch_bounds__(THREADS)
    gradient_norm(float* norm_and_factor, float* partial, unsigned* arrived,
                  const long long* tensors, const int* chunks, int count, float most) {
    float sum = 0;
#pragma unroll 4
    for (int i = blockIdx.x; i < count; i += gridDim.x) {
        const Tensor& t = ((const Tensor*)tensors)[chunks[i * 2]];
        sum += squares_of_chunk<Gradient>(t, (long long)chunks[i * 2 + 1] * CHUNK);
    }
    sum = sum_of_block(sum);
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(arrived, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    sum = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS)
        sum += __ldcg(partial + i);
    float norm = sqrtf(sum_of_block(sum));
    if (threadIdx.x == 0) {
        norm_and_factor[0] = norm;
        norm_and_factor[1] = fminf(1, most / (norm + 1e-6f));
        *arrived = 0;
    }
}
