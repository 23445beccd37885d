// Where rung 9 puts each thread: the row and column of its first element in the block's tile.
#include "warp_tile.cu"

__global__ void corners(int* rows, int* cols) {
    auto [row, col] = thread_corner();
    rows[threadIdx.x] = row;
    cols[threadIdx.x] = col;
}
