// Layer norm of rows that pass through shared memory; the formula is fast_layer_norm.cu's.
// Without room for them (null) the means and 1 / sqrt(...) of the rows are not kept.
#define INPUTS 1
#include "short.cuh"

extern "C" __global__ void SHAPED layer_norm_short(Element* y, float* means, float* inverses,
                                                   const Element* x, const Element* gamma,
                                                   const Element* beta, long long rows,
                                                   float epsilon) {
    Matrices matrices = {{x}, y, rows};
    start(matrices);
    float scale[values];
    float shift[values];
    if (early) {
        read_parameters(scale, gamma);
        read_parameters(shift, beta);
    }
    int round = 0;
    long long number = blockIdx.x;
    for (long long i = 0; number < matrices.tiles(); ++i, number += gridDim.x) {
        Tile tile = arrive(matrices, i, number);
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            int row = row_of_pass(pass);
            float v[values];
            read_row(v, matrices, tile, row, 0);
            float sum = 0;
#pragma unroll
            for (int j = 0; j < values; ++j)
                sum += v[j];
            float mean = row_reduce<Add>(sum, round) / columns;
            float squares = 0;
#pragma unroll
            for (int j = 0; j < values; ++j) {
                v[j] -= mean;
                if (has_value(j))
                    squares += v[j] * v[j];
            }
            float variance = row_reduce<Add>(squares, round) / columns;
            float inverse = rsqrtf(variance + epsilon);
            if (!early) {  // they would only hold registers
                read_parameters(scale, gamma);
                read_parameters(shift, beta);
            }
#pragma unroll
            for (int j = 0; j < values; ++j)
                v[j] = v[j] * inverse * scale[j] + shift[j];
            write_row(v, matrices, tile, row);
            if (means && member() == 0 && row < tile.rows) {
                means[tile.first + row] = mean;
                inverses[tile.first + row] = inverse;
            }
        }
        leave_with_results(matrices, i, number, tile);
    }
    finish();
}
