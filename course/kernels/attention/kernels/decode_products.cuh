// What the rungs for groups of heads share: a warp multiplies 16 keys with up to 8 queries that share
// them, by tensor cores:
//   scores (keys x queries) = K qᵀ,     results (dim x queries) = Vᵀ weights
// A lane reads 16 bytes at a time of keys and values, and holds them as the products' left factors.
// Which key and which column that is may be chosen freely, as long as the right factor has the same
// order. Of an mma a lane is group = lane / 4, pair = lane % 4.
#pragma once
#include "decode.cuh"
#include "mma.cuh"

constexpr int QUERIES = 8;  // of a block: the columns of an mma
constexpr int KEYS = 16;  // of a warp's tile: the rows of an mma
constexpr int K_PIECES = DIM / 32;  // of 16 bytes, for each lane in each of 2 keys
constexpr int V_PIECES = DIM / 64;  // for each lane in each of 4 keys
static_assert(PAGE % KEYS == 0, "a tile of keys lies in one page");

union Piece {
    uint4 all;
    unsigned word[4];  // two numbers each
};

// scores[0], [1]: key `group` with queries 2 pair and 2 pair + 1; [2], [3]: key group + 8.
__device__ void multiply_keys(float (&scores)[4], const Piece (&k)[2][K_PIECES],
                              const Piece (&q)[K_PIECES]) {
#pragma unroll
    for (int i = 0; i < K_PIECES; ++i)
#pragma unroll
        for (int w = 0; w < 4; w += 2) {
            unsigned a[4] = {k[0][i].word[w], k[1][i].word[w], k[0][i].word[w + 1],
                             k[1][i].word[w + 1]};
            mma(scores, a, &q[i].word[w]);
        }
}

// Weights of keys 2 pair and 2 pair + 1 for query `group`, from lanes that hold them for a key
// `group` and queries 2 pair and 2 pair + 1.
__device__ unsigned turned(unsigned weights) {
    int lane = threadIdx.x % 32;
    int from = lane % 4 * 8 + lane / 8;  // key 2 pair, query `group`
    unsigned first = __shfl_sync(~0u, weights, from);
    unsigned second = __shfl_sync(~0u, weights, from + 4);
    return __byte_perm(first, second, lane / 4 % 2 ? 0x7632 : 0x5410);
}

// Word e of piece p holds columns 2e and 2e + 1: rows `group` and group + 8 of product (p, e).
__device__ void add_values(float (&out)[V_PIECES][4][4], const Piece (&v)[4][V_PIECES],
                           const unsigned (&weights)[2]) {
#pragma unroll
    for (int p = 0; p < V_PIECES; ++p)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            unsigned a[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                a[i] = __byte_perm(v[i / 2 * 2][p].word[e], v[i / 2 * 2 + 1][p].word[e],
                                   i % 2 ? 0x7632 : 0x5410);
            mma(out[p][e], a, weights);
        }
}

// Softmax of a lane's two queries while the scores still come.
struct State {
    float most[2] = {-INFINITY, -INFINITY};
    float sum[2] = {0, 0};  // of this lane's keys

    // Scores to weights. factor: by what earlier weights shrink. Four groups of lanes share queries.
    __device__ void weigh(float (&scores)[4], float (&factor)[2]) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float next = fmaxf(most[j], fmaxf(scores[j], scores[j + 2]));
            for (int other = 4; other < 32; other *= 2)
                next = fmaxf(next, __shfl_xor_sync(~0u, next, other));
            factor[j] = power_of_two(most[j] - next);
            most[j] = next;
            scores[j] = power_of_two(scores[j] - next);
            scores[j + 2] = power_of_two(scores[j + 2] - next);
            sum[j] = sum[j] * factor[j] + scores[j] + scores[j + 2];
        }
    }
};

__device__ void keep(Found<QUERIES>& found, State& state, const float (&out)[V_PIECES][4][4]) {
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        int query = lane % 4 * 2 + j;
        for (int other = 4; other < 32; other *= 2)
            state.sum[j] += __shfl_xor_sync(~0u, state.sum[j], other);
        if (lane < 4) {
            found.most[warp][query] = state.most[j];
            found.sum[warp][query] = state.sum[j];
        }
#pragma unroll
        for (int p = 0; p < V_PIECES; ++p)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                int x = (p * 8 + lane / 4) * 8 + e * 2;
                found.result[warp][query][x] = out[p][e][j];
                found.result[warp][query][x + 1] = out[p][e][j + 2];
            }
    }
}
