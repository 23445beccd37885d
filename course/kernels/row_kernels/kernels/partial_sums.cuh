// What the backward passes of the two norms share.
#pragma once
#include "fast.cuh"

// Add up each column's sums over the rows of a tile that were worked on side by side, and write one
// row of partial sums. Shared memory has room for a tile of floats: the ring's,
// which is empty by now. All threads of the block call it.
__device__ inline void write_partial_sums(float* partial, const float (&sums)[values], int lead) {
    static_assert(
        !ring || tile_elements * sizeof(float) <= stages * inputs * tile_elements * sizeof(Element),
        "the ring has room for a float an element of a tile");
    float* shared = reinterpret_cast<float*>(shared_bytes);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < values; ++j)
        if (has_value(j, lead))
            shared[row_in_tile() * part + column_of(j / pack, lead) + j % pack] = sums[j];
    __syncthreads();
    float* row = partial + (blockIdx.x / cluster) * static_cast<long long>(columns) + rank() * part;
    for (int column = threadIdx.x; column < own_columns(); column += threads) {
        float sum = 0;
        for (int r = 0; r < tile_rows; ++r)
            sum += shared[r * part + column];
        row[column] = sum;
    }
}
