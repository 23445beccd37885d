// What all rungs are told of an attention. As attention/problem.py has it.
#pragma once
#ifdef HALF
#include <cuda_fp16.h>
using number = __half;
#else
#include <cuda_bf16.h>
using number = __nv_bfloat16;
#endif

struct Problem {
    int queries, keys;  // of each sequence
    int group;  // heads of queries for one head of keys
    int heads;  // of queries
    int first;  // keys that query 0 sees, each further query one more; below 0: none yet
    float scale;  // of a score, times log2(e): weights are powers of 2
    int lse_rows, lse_first;  // rows of lse for each head, and which of them is query 0's
};

// From one number of a tensor [batch, row, head, dim] to the next, in numbers; of dim: 1.
struct Strides {
    long long batch, row, head;

    __device__ long long at(int b, int r, int h) const {
        return b * batch + r * row + h * head;
    }
};

// How many keys the query in this row sees.
__device__ int seen(const Problem& p, int row) {
    return max(0, min(row + p.first, p.keys));
}
