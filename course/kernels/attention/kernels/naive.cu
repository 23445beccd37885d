// nvcc -arch=sm_75 -cubin naive.cu
// Attention as it is written down: three kernels, and between them the whole matrix of scores in
// global memory, queries x keys numbers for each head. Float32, a thread for each number.
// Tensors [batch, row, head, DIM]; scores [batch, heads, queries, keys].
#include "problem.cuh"

#ifndef DIM
#define DIM 128
#endif

// scores = scale q kᵀ, -inf where a query does not see a key.
// Grid: (ceil(keys / 256), queries, batch * heads), block: 256 threads.
__global__ void score(float* scores, const float* q, const float* k, Problem p, Strides of_q,
                      Strides of_k) {
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y;
    int head = blockIdx.z % p.heads;
    int batch = blockIdx.z / p.heads;
    if (key >= p.keys)
        return;
    q += of_q.at(batch, row, head);
    k += of_k.at(batch, key, head / p.group);
    float sum = 0;
    for (int x = 0; x < DIM; ++x)
        sum += q[x] * k[x];
    bool sees = key < seen(p, row);
    scores[((size_t)blockIdx.z * p.queries + row) * p.keys + key] =
        sees ? sum * p.scale : -INFINITY;
}

// Each row of scores becomes weights: 2 ** (score - largest), divided by their sum.
// Grid: (queries, batch * heads), block: 32 threads, a warp for a row.
__global__ void weigh(float* scores, float* lse, Problem p) {
    const float LN_2 = 0.69314718f;
    size_t row = (size_t)blockIdx.y * p.queries + blockIdx.x;
    scores += row * p.keys;
    float most = -INFINITY;
    for (int key = threadIdx.x; key < p.keys; key += 32)
        most = fmaxf(most, scores[key]);
    for (int lane = 16; lane > 0; lane /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, lane));
    float shift = most == -INFINITY ? 0 : most;  // -inf - -inf would be NaN
    float sum = 0;
    for (int key = threadIdx.x; key < p.keys; key += 32) {
        scores[key] = exp2f(scores[key] - shift);
        sum += scores[key];
    }
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(~0u, sum, lane);
    for (int key = threadIdx.x; key < p.keys; key += 32)
        scores[key] *= sum > 0 ? 1 / sum : 0;  // a row that sees no key has the result zero
    if (threadIdx.x == 0)
        lse[row] = (most + log2f(sum)) * LN_2;
}

// out = weights v. Grid: (queries, batch * heads), block: DIM threads.
__global__ void add(float* out, const float* weights, const float* v, Problem p, Strides of_out,
                    Strides of_v) {
    int row = blockIdx.x;
    int head = blockIdx.y % p.heads;
    int batch = blockIdx.y / p.heads;
    weights += ((size_t)blockIdx.y * p.queries + row) * p.keys;
    v += of_v.at(batch, 0, head / p.group) + threadIdx.x;
    float sum = 0;
    for (int key = 0; key < p.keys; ++key)
        sum += weights[key] * v[key * of_v.row];
    out[of_out.at(batch, row, head) + threadIdx.x] = sum;
}
