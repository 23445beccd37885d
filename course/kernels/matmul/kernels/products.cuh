// The heart of every rung from here on: each of a thread's values of A times each of B.
#pragma once

template <int TM, int TN>
__device__ void add_products(float (&sum)[TM][TN], const float (&a)[TM], const float (&b)[TN]) {
#pragma unroll
    for (int y = 0; y < TM; y++) {
#pragma unroll
        for (int x = 0; x < TN; x++) {
            sum[y][x] += a[y] * b[x];
        }
    }
}
