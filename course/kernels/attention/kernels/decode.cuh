// What the decoding rungs share: one query of each head against a cache of keys and values, and how
// what was found in parts of a sequence becomes one result.
#pragma once
#include "softmax.cuh"

#ifndef DIM
#define DIM 128  // numbers of a head: 64 or 128
#endif
#ifndef PAGE
#define PAGE 0  // keys of a page; 0: the cache is one tensor
#endif
#ifndef WARPS
#define WARPS 8  // of a block
#endif

constexpr int THREADS = 32 * WARPS;
constexpr int COLUMNS = DIM / 32;  // of a result, for each lane

// As attention/decode.py has it.
struct Decode {
    int heads, group;  // heads of queries, and how many of them share one head of keys
    int chunk;  // keys of a part
    int parts;  // of the longest sequence
    int pages;  // of each sequence, in the table
    float scale;  // of a score, times log2(e): weights are powers of 2
};

// Where a key or value lies, in numbers. Of a paged cache `batch` strides from page to page.
__device__ long long place(const Strides& of, const int* table, const Decode& d, int batch, int key,
                           int head) {
#if PAGE
    return of.at(table[(size_t)batch * d.pages + key / PAGE], key % PAGE, head);
#else
    return of.at(batch, key, head);
#endif
}

// 2 ** (score - most), and 0 where there is no score yet.
__device__ float weight_of(float score, float most) {
    return score == -INFINITY ? 0 : power_of_two(score - most);
}

// A lane's neighbouring numbers of a row, fetched at once.
template <typename Number>
struct alignas(COLUMNS * sizeof(Number)) Columns {
    Number x[COLUMNS];
};

// What the warps of a block found about its queries, each among its own keys: the largest score, the
// sum of weights relative to it, and the weighted sum of values.
template <int QUERIES>
struct Found {
    float most[WARPS][QUERIES], sum[WARPS][QUERIES];
    alignas(16) float result[WARPS][QUERIES][DIM];
    bool last;
};

// The same of the whole block's keys, in global memory: for each query `parts` of them.
struct Parts {
    float* results;  // [batch, head, part, DIM]
    float* states;  // [batch, head, part, 2]: the largest score and the sum
    unsigned* arrived;  // [batch, block of heads]: how many have come; 0 between launches
};

__device__ void store(number* out, float* lse, int row, int x, float result, float most,
                      float sum) {
    const float LN_2 = 0.69314718f;
    out[(size_t)row * DIM + x] = (number)(result / sum);
    if (x == 0)
        lse[row] = (most + log2f(sum)) * LN_2;
}

// One result of what the warps found: the final one if there is one part, else this part's.
// row: of the first query among all heads of the batch; count: how many queries there are.
template <int QUERIES>
__device__ void join_warps(const Found<QUERIES>& found, number* out, float* lse, const Parts& to,
                           const Decode& d, int row, int count, int part, int parts) {
    for (int i = threadIdx.x; i < count * DIM; i += THREADS) {
        int query = i / DIM;
        int x = i % DIM;
        float most = -INFINITY, sum = 0, result = 0;
        for (int w = 0; w < WARPS; ++w)
            most = fmaxf(most, found.most[w][query]);
        for (int w = 0; w < WARPS; ++w) {
            float weight = weight_of(found.most[w][query], most);
            sum += weight * found.sum[w][query];
            result += weight * found.result[w][query][x];
        }
        if (parts == 1) {
            store(out, lse, row + query, x, result, most, sum);
            continue;
        }
        size_t place = (size_t)(row + query) * d.parts + part;
        to.results[place * DIM + x] = result;
        if (x == 0) {
            to.states[place * 2] = most;
            to.states[place * 2 + 1] = sum;
        }
    }
}

// The result of all parts: a warp has a query, and takes AT_ONCE parts at a time, whose states and
// values are on their way together. Lanes i and i + 16 have part i's state.
__device__ void join_parts(number* out, float* lse, const Parts& from, const Decode& d, int row,
                           int count, int parts) {
    constexpr int AT_ONCE = 16;
    int lane = threadIdx.x % 32;
    for (int query = threadIdx.x / 32; query < count; query += WARPS) {
        size_t place = (size_t)(row + query) * d.parts;
        float most = -INFINITY, sum = 0, result[COLUMNS] = {};
        for (int first = 0; first < parts; first += AT_ONCE) {
            int own = min(first + lane % AT_ONCE, parts - 1);
            float score = from.states[(place + own) * 2];
            float weights = from.states[(place + own) * 2 + 1];
            Columns<float> values[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                size_t part = place + min(first + i, parts - 1);
                values[i] = ((const Columns<float>*)(from.results + part * DIM))[lane];
            }
            float next = fmaxf(most, score);
            for (int other = AT_ONCE / 2; other > 0; other /= 2)
                next = fmaxf(next, __shfl_xor_sync(~0u, next, other));
            float factor = weight_of(most, next);
            float weight = first + lane % AT_ONCE < parts ? weight_of(score, next) : 0;
            most = next;
            sum = sum * factor + weight * weights;
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                result[c] *= factor;
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                float share = __shfl_sync(~0u, weight, i);
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c)
                    result[c] += share * values[i].x[c];
            }
        }
        for (int other = AT_ONCE / 2; other > 0; other /= 2)
            sum += __shfl_xor_sync(~0u, sum, other);
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            store(out, lse, row + query, lane * COLUMNS + c, result[c], most, sum);
    }
}

// Counts a block that has arrived, and returns how many came before it. Whoever sees the count sees
// what those blocks wrote before their __syncthreads(), too: cheaper than a fence by every thread.
__device__ unsigned arrive(unsigned* arrived) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(arrived)
                 : "memory");
    return before;
}

// All of it: what the warps found becomes the block's part, and the block that comes last joins the
// parts. counter: which of `arrived` is these queries'.
template <int QUERIES>
__device__ void finish(Found<QUERIES>& found, number* out, float* lse, const Parts& of,
                       const Decode& d, int row, int count, int part, int parts, int counter) {
    __syncthreads();  // every warp has written what it found
    join_warps(found, out, lse, of, d, row, count, part, parts);
    if (parts == 1)
        return;
    __syncthreads();
    if (threadIdx.x == 0)
        found.last = arrive(&of.arrived[counter]) == parts - 1;
    __syncthreads();
    if (!found.last)
        return;
    join_parts(out, lse, of, d, row, count, parts);
    if (threadIdx.x == 0)
        of.arrived[counter] = 0;
}
