// Four elements on their way out: into a row of C, or turned into a column of a tile.
#pragma once
#include "four.cuh"

// Elements (row, col) to (row, col + 3) of a matrix; those outside are not written.
__device__ void write_four(float* matrix, int row, int col, int rows, int cols, float4 value) {
    float* to = matrix + (size_t)row * cols + col;
    if (row >= rows || col >= cols)
        return;
    if (rows_are_aligned(matrix, cols)) {
        *(float4*)to = value;
        return;
    }
    for (int i = 0; i < 4; i++)
        if (col + i < cols)
            to[i] = (&value.x)[i];
}

// Four neighbours in a row of A become neighbours in a column of its tile.
template <int BK, int PITCH>
__device__ void turn(float (&tile)[BK][PITCH], int row, int col, float4 value) {
    tile[col][row] = value.x;
    tile[col + 1][row] = value.y;
    tile[col + 2][row] = value.z;
    tile[col + 3][row] = value.w;
}
