// RMS norm of rows that pass through shared memory; the formula is fast_rms_norm.cu's.
// Without room for them (null) the rows' 1 / sqrt(...) are not kept.
#define INPUTS 1
#include "short.cuh"

extern "C" __global__ void SHAPED rms_norm_short(Element* y, float* inverses, const Element* x,
                                                 const Element* gamma, long long rows,
                                                 float epsilon) {
    Matrices matrices = {{x}, y, rows};
    start(matrices);
    float scale[values];
    if (early)
        read_parameters(scale, gamma);
    int round = 0;
    long long number = blockIdx.x;
    for (long long i = 0; number < matrices.tiles(); ++i, number += gridDim.x) {
        Tile tile = arrive(matrices, i, number);
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            int row = row_of_pass(pass);
            float v[values];
            read_row(v, matrices, tile, row, 0);
            float squares = 0;
#pragma unroll
            for (int j = 0; j < values; ++j)
                squares += v[j] * v[j];
            float inverse = rsqrtf(row_reduce<Add>(squares, round) / columns + epsilon);
            if (!early)  // they would only hold registers
                read_parameters(scale, gamma);
#pragma unroll
            for (int j = 0; j < values; ++j)
                v[j] = v[j] * inverse * scale[j];
            write_row(v, matrices, tile, row);
            if (inverses && member() == 0 && row < tile.rows)
                inverses[tile.first + row] = inverse;
        }
        leave_with_results(matrices, i, number, tile);
    }
    finish();
}
