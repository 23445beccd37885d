// The way back: elements (row, col) to (row, col + 3) of a matrix; those outside are not written.
#pragma once
#include "read_four.cuh"

__device__ void write_four(float* matrix, int row, int col, int rows, int cols, float4 value) {
    float* to = matrix + (size_t)row * cols + col;
    if (row >= rows || col >= cols) {
        return;
    }
    if (rows_are_aligned(matrix, cols)) {
        *(float4*)to = value;
        return;
    }
    float some[4] = {value.x, value.y, value.z, value.w};
    for (int i = 0; i < 4; i++) {
        if (col + i < cols) {
            to[i] = some[i];
        }
    }
}
