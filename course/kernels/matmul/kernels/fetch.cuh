// Bounds, once: how THREADS threads bring a tile into shared memory, and one an element into C.
#pragma once

// The ROWS x COLS elements from (row, col) on; zero for those beyond the matrix's rows x cols.
template <int THREADS, int ROWS, int COLS>
__device__ void fetch(float (&tile)[ROWS][COLS], const float* matrix, int row, int col, int rows,
                      int cols) {
    for (int i = threadIdx.x; i < ROWS * COLS; i += THREADS) {
        int y = row + i / COLS;
        int x = col + i % COLS;
        bool inside = y < rows && x < cols;
        tile[i / COLS][i % COLS] = inside ? matrix[(size_t)y * cols + x] : 0.0f;
    }
}

__device__ void store(float* c, int row, int col, int m, int n, float value) {
    if (row < m && col < n) {
        c[(size_t)row * n + col] = value;
    }
}
