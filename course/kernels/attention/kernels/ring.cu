// nvcc -arch=sm_80 -cubin ring.cu
// What a rank found in its turns, merged: a warp per row, a lane a few neighbouring columns of it.
// Grid: as many blocks as rows need, block: THREADS.
#include <cuda_bf16.h>

#ifndef DIM
#define DIM 128  // numbers of a head: 64 or 128
#endif

constexpr int THREADS = 256;
constexpr int COLUMNS = DIM / 32;

struct alignas(COLUMNS * sizeof(__nv_bfloat16)) Columns {
    __nv_bfloat16 x[COLUMNS];
};

// parts [turn, batch, query, head, DIM]: results, each divided by its own sum of weights.
// part_lse [turn, batch, head, query]: its logarithm; -inf: no key was seen, and no result written.
// out, lse: the same for all turns.
__global__ __launch_bounds__(THREADS) void merge(__nv_bfloat16* out, float* lse,
                                                 const __nv_bfloat16* parts, const float* part_lse,
                                                 int turns, int batch, int queries, int heads) {
    int lane = threadIdx.x % 32;
    int rows = batch * queries * heads;
    int row = (blockIdx.x * THREADS + threadIdx.x) / 32;
    if (row >= rows)
        return;
    int head = row % heads;
    int query = row / heads % queries;
    int own = (row / heads / queries * heads + head) * queries + query;  // its place in lse
    float largest = -INFINITY;
    for (int turn = 0; turn < turns; ++turn)
        largest = fmaxf(largest, part_lse[turn * rows + own]);
    float total = 0;
    float result[COLUMNS] = {};
    for (int turn = 0; turn < turns; ++turn) {
        float logarithm = part_lse[turn * rows + own];
        if (logarithm == -INFINITY)
            continue;
        float weight = expf(logarithm - largest);
        total += weight;
        Columns part = ((const Columns*)(parts + ((size_t)turn * rows + row) * DIM))[lane];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            result[c] += weight * (float)part.x[c];
    }
    Columns merged;
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c)
        merged.x[c] = (__nv_bfloat16)(total > 0 ? result[c] / total : 0);
    ((Columns*)(out + (size_t)row * DIM))[lane] = merged;
    if (lane == 0)
        lse[own] = total > 0 ? largest + logf(total) : -INFINITY;
}
