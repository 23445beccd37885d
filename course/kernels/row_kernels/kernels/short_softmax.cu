// Softmax of short rows, many at a time.
#define INPUTS 1
#include "short.cuh"

extern "C" __global__ void SHAPED softmax_short(Element* out, const Element* x, long long rows) {
    long long first = first_of_tile();
    int here = rows_of_tile(first, rows);
    bring(x, first, here);
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
        int row = row_of_pass(pass);
        float v[values];
        read_row(v, row, here, Max::neutral());
        float largest;
        float scale = 1 / exponentials(v, largest);
#pragma unroll
        for (int j = 0; j < values; ++j)
            v[j] *= scale;
        write_row(v, row, here);
    }
    __syncthreads();
    take(out, first, here);
}
