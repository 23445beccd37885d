// What the backward kernels share. Of a weight p = exp(score - lse) and its change ds:
//   dv = Σ p dout      dp = dout · v      ds = p (dp - delta)      dq = Σ ds k      dk = Σ ds q
// with dv and dk summed over queries, dq over keys, and dq and dk times the scale of scores.
// delta = dout · out, for each query: what all its weights lose since their sum stays 1.
// Source: Dao et al., FlashAttention (2022), appendix B.
#pragma once
#include "problem.cuh"

const float LOG2_E = 1.44269504f, LN_2 = 0.69314718f;

// The first query that sees this key; where it is no query's row, none does.
__device__ int first_to_see(const Problem& p, int key) {
    return key < p.keys ? max(0, key - p.first + 1) : p.queries;
}

// Where a query's lse and delta are.
__device__ size_t place_of(const Problem& p, int batch, int head, int row) {
    return ((size_t)batch * p.heads + head) * p.lse_rows + p.lse_first + row;
}
