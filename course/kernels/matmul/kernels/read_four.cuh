// Four neighbours in global memory at once, wherever they lie.
#pragma once
#include "four.cuh"

// Only rows of 4, 8, 12 ... elements in an aligned array all begin at multiples of 16 bytes.
__device__ bool rows_are_aligned(const float* matrix, int cols) {
    return (size_t)matrix % 16 == 0 && cols % 4 == 0;
}

// Elements (row, col) to (row, col + 3); zero for those outside.
__device__ float4 read_four(const float* matrix, int row, int col, int rows, int cols) {
    const float* from = matrix + (size_t)row * cols + col;
    if (row >= rows || col >= cols) {
        return float4{};
    }
    if (rows_are_aligned(matrix, cols)) {
        return *(const float4*)from;
    }
    alignas(16) float some[4] = {};
    for (int i = 0; i < 4; i++) {
        if (col + i < cols) {
            some[i] = from[i];
        }
    }
    return four(some[0]);
}
