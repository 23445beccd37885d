// Softmax of rows that pass through shared memory.
#define INPUTS 1
#include "short.cuh"

extern "C" __global__ void SHAPED softmax_short(Element* out, const Element* x, long long rows) {
    Matrices matrices = {{x}, out, rows};
    start(matrices);
    int round = 0;
    long long number = blockIdx.x;
    for (long long i = 0; number < matrices.tiles(); ++i, number += gridDim.x) {
        Tile tile = arrive(matrices, i, number);
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            int row = row_of_pass(pass);
            float v[values];
            read_row(v, matrices, tile, row, Max::neutral());
            float largest;
            float scale = 1 / exponentials(v, largest, round);
#pragma unroll
            for (int j = 0; j < values; ++j)
                v[j] *= scale;
            write_row(v, matrices, tile, row);
        }
        leave_with_results(matrices, i, number, tile);
    }
    finish();
}
