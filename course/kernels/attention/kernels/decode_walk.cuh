// How the first two decoding rungs walk through keys: a warp takes one key after the other, and each
// of its lanes a few columns of it.
#pragma once
#include "decode.cuh"

// Warp w takes the keys first + w, first + w + WARPS, ... before `end`.
__device__ void walk(Found<1>& found, const number* q, const number* k, const number* v,
                     const int* table, const Decode& d, const Strides& of_k, const Strides& of_v,
                     int batch, int head, int first, int end) {
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    int key_head = head / d.group;
    auto query = ((const Columns<number>*)(q + ((size_t)batch * d.heads + head) * DIM))[lane];
    float most = -INFINITY, sum = 0, result[COLUMNS] = {};
    for (int key = first + warp; key < end; key += WARPS) {
        const number* at_k = k + place(of_k, table, d, batch, key, key_head);
        const number* at_v = v + place(of_v, table, d, batch, key, key_head);
        auto keys = ((const Columns<number>*)at_k)[lane];
        auto values = ((const Columns<number>*)at_v)[lane];
        float score = 0;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            score += (float)query.x[c] * (float)keys.x[c];
        for (int other = 16; other > 0; other /= 2)
            score += __shfl_xor_sync(~0u, score, other);
        score *= d.scale;

        float next = fmaxf(most, score);
        float factor = weight_of(most, next);
        float weight = power_of_two(score - next);
        most = next;
        sum = sum * factor + weight;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            result[c] = result[c] * factor + weight * (float)values.x[c];
    }
    if (lane == 0) {
        found.most[warp][0] = most;
        found.sum[warp][0] = sum;
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c)
        found.result[warp][0][lane * COLUMNS + c] = result[c];
}
