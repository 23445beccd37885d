// nvcc -arch=sm_75 -cubin backward_plain.cu
// The backward pass as its formulas say (backward.cuh), the weights computed again from lse. Three
// kernels of float32, a warp for each row of a head, DIM / 32 of the row's numbers for each lane.
// A row's sum has one order, so results are the same in every run.
// Grid: (ceil(rows / 4), heads, batch), block: 128 threads. Tensors [batch, row, head, DIM].
#include "backward.cuh"

#ifndef DIM
#define DIM 128
#endif

constexpr int WARPS = 4;

// A row of a head, spread over the lanes of a warp.
struct Row {
    float x[DIM / 32] = {};

    __device__ Row() {}
    __device__ Row(const float* row) {
        for (int i = 0; i < DIM / 32; ++i)
            x[i] = row[i * 32 + threadIdx.x % 32];
    }
    __device__ void add(float factor, const Row& other) {
        for (int i = 0; i < DIM / 32; ++i)
            x[i] += factor * other.x[i];
    }
    __device__ void store(float* row, float factor) const {
        for (int i = 0; i < DIM / 32; ++i)
            row[i * 32 + threadIdx.x % 32] = x[i] * factor;
    }
};

// The product of two rows, in every lane.
__device__ float dot(const Row& a, const Row& b) {
    float sum = 0;
    for (int i = 0; i < DIM / 32; ++i)
        sum += a.x[i] * b.x[i];
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(~0u, sum, other);
    return sum;
}

// The weight of a key for a query, as the forward pass had it.
__device__ float weight(const Row& q, const Row& k, float lse, const Problem& p) {
    return exp2f(dot(q, k) * p.scale - lse * LOG2_E);
}

__device__ int own_row() {
    return blockIdx.x * WARPS + threadIdx.x / 32;
}

// delta = dout · out, for each query.
__global__ void multiply_rows(float* delta, const float* out, const float* dout, Problem p,
                              Strides of_out, Strides of_dout) {
    int row = own_row();
    int head = blockIdx.y;
    int batch = blockIdx.z;
    if (row >= p.queries)
        return;
    float sum =
        dot(Row(out + of_out.at(batch, row, head)), Row(dout + of_dout.at(batch, row, head)));
    if (threadIdx.x % 32 == 0)
        delta[place_of(p, batch, head, row)] = sum;
}

// dq: a warp has a query, and walks through the keys that it sees.
__global__ void for_queries(float* dq, const float* q, const float* k, const float* v,
                            const float* dout, const float* lse, const float* delta, Problem p,
                            Strides of_dq, Strides of_q, Strides of_k, Strides of_v,
                            Strides of_dout) {
    int row = own_row();
    int head = blockIdx.y;
    int batch = blockIdx.z;
    if (row >= p.queries)
        return;
    Row own_q(q + of_q.at(batch, row, head));
    Row own_dout(dout + of_dout.at(batch, row, head));
    size_t place = place_of(p, batch, head, row);
    Row sum;
    for (int key = 0; key < seen(p, row); ++key) {
        Row own_k(k + of_k.at(batch, key, head / p.group));
        Row own_v(v + of_v.at(batch, key, head / p.group));
        float w = weight(own_q, own_k, lse[place], p);
        float dp = dot(own_dout, own_v);
        sum.add(w * (dp - delta[place]), own_k);
    }
    sum.store(dq + of_dq.at(batch, row, head), p.scale * LN_2);
}

// dk and dv: a warp has a key, and walks through the queries that see it, in all heads of its group.
__global__ void for_keys(float* dk, float* dv, const float* q, const float* k, const float* v,
                         const float* dout, const float* lse, const float* delta, Problem p,
                         Strides of_dk, Strides of_dv, Strides of_q, Strides of_k, Strides of_v,
                         Strides of_dout) {
    int key = own_row();
    int batch = blockIdx.z;
    if (key >= p.keys)
        return;
    Row own_k(k + of_k.at(batch, key, blockIdx.y));
    Row own_v(v + of_v.at(batch, key, blockIdx.y));
    Row sum_k, sum_v;
    for (int member = 0; member < p.group; ++member) {
        int head = blockIdx.y * p.group + member;
        for (int row = first_to_see(p, key); row < p.queries; ++row) {
            Row own_q(q + of_q.at(batch, row, head));
            Row own_dout(dout + of_dout.at(batch, row, head));
            size_t place = place_of(p, batch, head, row);
            float w = weight(own_q, own_k, lse[place], p);
            float dp = dot(own_dout, own_v);
            sum_v.add(w, own_dout);
            sum_k.add(w * (dp - delta[place]), own_q);
        }
    }
    sum_k.store(dk + of_dk.at(batch, key, blockIdx.y), p.scale * LN_2);
    sum_v.store(dv + of_dv.at(batch, key, blockIdx.y), 1);
}
