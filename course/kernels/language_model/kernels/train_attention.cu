// Causal attention for training, in the flash way: no matrix is stored, only each row's lse.
// qkv [batch, length, heads + 2 kv_heads, HEAD]; out, d_out [batch, length, heads, HEAD].
// A thread has a query (or, for the keys' gradients, a key) and holds its vectors in registers.

struct Sizes {
    int batch, length, heads, kv_heads;
};

struct Rows {
    int row, all;  // numbers of a row of qkv

    __device__ Rows(const Sizes& s, int batch) : row(batch * s.length) {
        all = (s.heads + 2 * s.kv_heads) * HEAD;
    }

    __device__ const float* of(const float* qkv, int position, int head) const {
        return qkv + (size_t)(row + position) * all + head * HEAD;
    }
};

// The last key that a query sees: its own.
__device__ int last_seen(int position, int length) {
    return min(position, length - 1);
}

__device__ float dot(const float* a, const float* b) {
    float sum = 0;
#pragma unroll
    for (int x = 0; x < HEAD; ++x)
        sum += a[x] * b[x];
    return sum;
}

__device__ void load(float* to, const float* from) {
#pragma unroll
    for (int x = 0; x < HEAD; ++x)
        to[x] = from[x];
}

// Grid: (length / block, heads, batch).
__global__ void attend(float* out, float* lse, const float* qkv, int batch, int length, int heads,
                       int kv_heads) {
    Sizes s{batch, length, heads, kv_heads};
    int position = blockIdx.x * blockDim.x + threadIdx.x;
    int head = blockIdx.y;
    if (position >= length)
        return;
    Rows rows(s, blockIdx.z);
    int key_head = heads + head / (heads / kv_heads);
    float q[HEAD];
    float sum[HEAD] = {};
    load(q, rows.of(qkv, position, head));
    float largest = -INFINITY;
    float total = 0;
    int last = last_seen(position, length);
    for (int key = 0; key <= last; ++key) {
        const float* k = rows.of(qkv, key, key_head);
        const float* v = rows.of(qkv, key, key_head + kv_heads);
        float score = dot(q, k) * rsqrtf(HEAD);
        float higher = fmaxf(largest, score);
        float factor = expf(largest - higher);
        float weight = expf(score - higher);
        largest = higher;
        total = total * factor + weight;
#pragma unroll
        for (int x = 0; x < HEAD; ++x)
            sum[x] = sum[x] * factor + weight * v[x];
    }
    size_t place = ((size_t)(blockIdx.z * length + position) * heads + head);
    for (int x = 0; x < HEAD; ++x)
        out[place * HEAD + x] = sum[x] / total;
    lse[place] = largest + logf(total);
}

// d_qkv's queries. dots [batch, length, heads] = out · d_out, which the keys' gradients need, too.
__global__ void attend_backward_q(float* d_qkv, float* dots, const float* d_out, const float* out,
                                  const float* lse, const float* qkv, int batch, int length,
                                  int heads, int kv_heads) {
    Sizes s{batch, length, heads, kv_heads};
    int position = blockIdx.x * blockDim.x + threadIdx.x;
    int head = blockIdx.y;
    if (position >= length)
        return;
    Rows rows(s, blockIdx.z);
    int key_head = heads + head / (heads / kv_heads);
    size_t place = ((size_t)(blockIdx.z * length + position) * heads + head);
    float q[HEAD], d[HEAD];
    float dq[HEAD] = {};
    load(q, rows.of(qkv, position, head));
    load(d, d_out + place * HEAD);
    float with_out = dot(d, out + place * HEAD);
    int last = last_seen(position, length);
    for (int key = 0; key <= last; ++key) {
        const float* k = rows.of(qkv, key, key_head);
        const float* v = rows.of(qkv, key, key_head + kv_heads);
        float weight = expf(dot(q, k) * rsqrtf(HEAD) - lse[place]);
        float slope = weight * (dot(d, v) - with_out) * rsqrtf(HEAD);
#pragma unroll
        for (int x = 0; x < HEAD; ++x)
            dq[x] += slope * k[x];
    }
    float* to = d_qkv + (rows.of(qkv, position, head) - qkv);
    for (int x = 0; x < HEAD; ++x)
        to[x] = dq[x];
    dots[place] = with_out;
}

// d_qkv's keys and values: all queries of all heads that see a key. Grid: (.., kv_heads, batch).
__global__ void attend_backward_kv(float* d_qkv, const float* dots, const float* d_out,
                                   const float* lse, const float* qkv, int batch, int length,
                                   int heads, int kv_heads) {
    Sizes s{batch, length, heads, kv_heads};
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    if (key >= length)
        return;
    Rows rows(s, blockIdx.z);
    int group = heads / kv_heads;
    float k[HEAD], v[HEAD];
    float dk[HEAD] = {}, dv[HEAD] = {};
    load(k, rows.of(qkv, key, heads + blockIdx.y));
    load(v, rows.of(qkv, key, heads + kv_heads + blockIdx.y));
    for (int position = 0; position < length; ++position) {
        if (key > last_seen(position, length))
            continue;
        for (int head = blockIdx.y * group; head < (blockIdx.y + 1) * group; ++head) {
            size_t place = ((size_t)(blockIdx.z * length + position) * heads + head);
            const float* q = rows.of(qkv, position, head);
            const float* d = d_out + place * HEAD;
            float weight = expf(dot(q, k) * rsqrtf(HEAD) - lse[place]);
            float slope = weight * (dot(d, v) - dots[place]) * rsqrtf(HEAD);
#pragma unroll
            for (int x = 0; x < HEAD; ++x) {
                dk[x] += slope * q[x];
                dv[x] += weight * d[x];
            }
        }
    }
    float* to = d_qkv + (rows.of(qkv, key, heads + blockIdx.y) - qkv);
    for (int x = 0; x < HEAD; ++x) {
        to[x] = dk[x];
        to[(size_t)kv_heads * HEAD + x] = dv[x];
    }
}
