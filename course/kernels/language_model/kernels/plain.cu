// nvcc -arch=sm_80 -cubin plain.cu
// The plain form of a token: nine small kernels, of which a layer launches seven. blockIdx.y or z is
// the sequence of a batch; each reads all weights for itself. Sums are float, whatever weights are.
#include "numbers.cuh"

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int KEYS = 32;  // of a part: one for each lane

// x[sequence] = the embedding of its token. Grid: (width / THREADS, sequences).
__global__ void embed(float* x, const number* embedding, const int* token, int width) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < width)
        x[blockIdx.y * width + i] = embedding[(size_t)token[blockIdx.y] * width + i];
}

// One warp's product of a row of weights and y, both `columns` long.
__device__ float dot(const number* row, const float* y, int columns) {
    float sum = 0;
#pragma unroll 8
    for (int i = threadIdx.x % 32 * EIGHT; i < columns; i += 32 * EIGHT) {
        Eight weights = *(const Eight*)(row + i);
        EightFloats factors = *(const EightFloats*)(y + i);
        for (int j = 0; j < EIGHT; ++j)
            sum += (float)weights.x[j] * factors.x[j];
    }
    return sum_of_warp(sum);
}

// y = x over the root of its mean square, times gain, by a whole block, in shared memory.
__device__ void norm(float* y, const float* x, const number* gain, int width, float eps) {
    __shared__ float squares[WARPS];
    float sum = 0;
    for (int i = threadIdx.x; i < width; i += THREADS)
        sum += x[i] * x[i];
    sum = sum_of_warp(sum);
    if (threadIdx.x % 32 == 0)
        squares[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < WARPS; ++w)
        sum += squares[w];
    float factor = rsqrtf(sum / width + eps);
    for (int i = threadIdx.x; i < width; i += THREADS)
        y[i] = x[i] * factor * (float)gain[i];
    __syncthreads();
}

// out[sequence, row] = weight[row] · norm(x[sequence]): a warp has a row.
// Grid: (rows / WARPS, sequences). Shared memory: width floats.
__global__ void norm_gemv(float* out, const float* x, const number* gain, const number* weight,
                          int rows, int width, float eps) {
    extern __shared__ __align__(16) float y[];
    norm(y, x + (size_t)blockIdx.y * width, gain, width, eps);
    int row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    float sum = dot(weight + (size_t)row * width, y, width);
    if (threadIdx.x % 32 == 0)
        out[(size_t)blockIdx.y * rows + row] = sum;
}

// Turns a head of qkv [sequence, heads + 2 kv_heads, head] in place, by its position; keys (turned)
// and values (as they are) also go into the cache. A thread has the pair (i, i + head / 2).
// Grid: (heads + 2 kv_heads, sequences), block: head / 2.
__global__ void rope_append(float* qkv, number* keys, number* values, const int* table,
                            const int* position, int heads, int kv_heads, int head, int pages,
                            int layer_pages, float theta) {
    int i = threadIdx.x;
    int half = head / 2;
    int at = position[blockIdx.y];
    float* own = qkv + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * head;
    float left = own[i];
    float right = own[i + half];
    int kv = blockIdx.x - heads;  // below 0: a query
    bool is_value = kv >= kv_heads;
    if (!is_value) {
        float angle = at * powf(theta, -2.0f * i / head);
        own[i] = left * cosf(angle) - right * sinf(angle);
        own[i + half] = right * cosf(angle) + left * sinf(angle);
    }
    if (kv < 0)
        return;
    number* cache = is_value ? values : keys;
    cache += place_in_cache(table + (size_t)blockIdx.y * pages, layer_pages, at, kv_heads,
                            kv % kv_heads, head);
    cache[i] = (number)(is_value ? left : own[i]);
    cache[i + half] = (number)(is_value ? right : own[i + half]);
}

// One lane's product of a key and a query.
template <int HEAD>
__device__ float dot_of_lane(const number* key, const float* q) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < HEAD; i += EIGHT) {
        Eight numbers = *(const Eight*)(key + i);
        EightFloats factors = *(const EightFloats*)(q + i);
        for (int j = 0; j < EIGHT; ++j)
            sum += (float)numbers.x[j] * factors.x[j];
    }
    return sum;
}

// Attention of one head of queries to KEYS keys, by one warp: lane i scores key i, then a lane has
// the columns lane, lane + 32, ... of the values. parts[(sequence, head, part)]: the weighted sum of
// the head's numbers, then the largest score, then the sum of weights.
// Grid: (most parts, heads, sequences), block: KEYS. qkv: as rope_append left it.
template <int HEAD>
__global__ void attend(float* parts, const float* qkv, const number* keys, const number* values,
                       const int* table, const int* position, int kv_heads, int pages,
                       int layer_pages) {
    constexpr int COLUMNS = (HEAD + 31) / 32;
    int heads = gridDim.y;
    int sequence = blockIdx.z;
    int lane = threadIdx.x;
    int first = blockIdx.x * KEYS;
    int count = min(KEYS, position[sequence] + 1 - first);
    if (count <= 0)
        return;
    size_t row = (size_t)sequence * (heads + 2 * kv_heads) + blockIdx.y;
    const float* q = qkv + row * HEAD;
    size_t at =
        place_in_cache(table + (size_t)sequence * pages, layer_pages, first + min(lane, count - 1),
                       kv_heads, blockIdx.y / (heads / kv_heads), HEAD);
    float score = dot_of_lane<HEAD>(keys + at, q) * rsqrtf(HEAD);
    score = lane < count ? score : -INFINITY;
    float most = score;
    for (int other = 16; other > 0; other /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, other));
    float weight = expf(score - most);
    float result[COLUMNS] = {};
#pragma unroll 8
    for (int key = 0; key < count; ++key) {
        float share = __shfl_sync(~0u, weight, key);
        size_t there = __shfl_sync(~0u, at, key);
        for (int c = 0; c < COLUMNS; ++c)
            if (lane + 32 * c < HEAD)
                result[c] += share * (float)values[there + lane + 32 * c];
    }
    float sum = sum_of_warp(weight);
    row = ((size_t)sequence * heads + blockIdx.y) * gridDim.x + blockIdx.x;
    float* to = parts + row * (HEAD + 2);
    for (int c = 0; c < COLUMNS; ++c)
        if (lane + 32 * c < HEAD)
            to[lane + 32 * c] = result[c];
    to[HEAD] = most;
    to[HEAD + 1] = sum;
}

// out[sequence, head, i] = the parts as one. Grid: (heads, sequences), block: head.
__global__ void join(float* out, const float* parts, const int* position, int most_parts) {
    int i = threadIdx.x;
    int head = blockDim.x;
    int step = head + 2;
    int count = position[blockIdx.y] / KEYS + 1;
    size_t row = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
    const float* own = parts + row * most_parts * step;
    float most = -INFINITY, weights = 0, result = 0;
    for (int p = 0; p < count; ++p)
        most = fmaxf(most, own[p * step + head]);
#pragma unroll 8
    for (int p = 0; p < count; ++p) {
        float factor = expf(own[p * step + head] - most);
        weights += factor * own[p * step + head + 1];
        result += factor * own[p * step + i];
    }
    out[row * head + i] = result / weights;
}

// x[sequence, row] += weight[row] · y[sequence]: a warp has a row. Grid: (rows / WARPS, sequences).
__global__ void gemv_add(float* x, const float* y, const number* weight, int rows, int columns) {
    int row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    float sum = dot(weight + (size_t)row * columns, y + (size_t)blockIdx.y * columns, columns);
    if (threadIdx.x % 32 == 0)
        x[(size_t)blockIdx.y * rows + row] += sum;
}

// out[sequence, i] = silu(gate) up, of rows i and hidden + i of the weights, times norm(x[sequence]).
// Grid: (hidden / WARPS, sequences). Shared memory: width floats.
__global__ void norm_swiglu(float* out, const float* x, const number* gain, const number* weight,
                            int hidden, int width, float eps) {
    extern __shared__ __align__(16) float y[];
    norm(y, x + (size_t)blockIdx.y * width, gain, width, eps);
    int row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= hidden)
        return;
    float gate = dot(weight + (size_t)row * width, y, width);
    float up = dot(weight + (size_t)(hidden + row) * width, y, width);
    if (threadIdx.x % 32 == 0)
        out[(size_t)blockIdx.y * hidden + row] = gate / (1 + expf(-gate)) * up;
}

// A float as an integer that is ordered alike, above a column's complement: of equals the first wins.
__device__ unsigned long long ranked(float x, int column) {
    unsigned bits = __float_as_uint(x);
    bits = bits >> 31 ? ~bits : bits | 1u << 31;
    return (unsigned long long)bits << 32 | ~(unsigned)column;
}

// best[sequence] = the largest of ranked(logit, column): `best` must hold 0 before.
// Grid: (blocks, sequences).
__global__ void argmax(unsigned long long* best, const float* logits, int vocabulary) {
    const float* own = logits + (size_t)blockIdx.y * vocabulary;
    unsigned long long most = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < vocabulary; i += gridDim.x * THREADS)
        most = max(most, ranked(own[i], i));
    for (int other = 16; other > 0; other /= 2)
        most = max(most, __shfl_xor_sync(~0u, most, other));
    if (threadIdx.x % 32 == 0)
        atomicMax(&best[blockIdx.y], most);
}

// token = the column in `best`, which is made ready for the next time; position goes on by one.
__global__ void next_token(int* token, int* position, unsigned long long* best) {
    int sequence = threadIdx.x;
    token[sequence] = (int)~(unsigned)best[sequence];
    best[sequence] = 0;
    position[sequence] += 1;
}
