// RMS norm's backward pass of rows that pass through shared memory; the formulas are
// fast_rms_norm_backward.cu's.
#define INPUTS 2
#include "short.cuh"

extern "C" __global__ void SHAPED rms_norm_backward_short(Element* dx, Sum* dgamma,
                                                          const Element* dy, const Element* x,
                                                          const Element* gamma,
                                                          const float* inverses, long long rows) {
    Matrices matrices = {{x, dy}, dx, rows};
    start(matrices);
    float scale[values];
    read_parameters(scale, gamma);
    float of_columns[1][values] = {};
    int round = 0;
    long long number = blockIdx.x;
    for (long long i = 0; number < matrices.tiles(); ++i, number += gridDim.x) {
        float inverse[passes];
        read_of_rows(inverse, inverses, tile_of(matrices, i, number));
        Tile tile = arrive(matrices, i, number);
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            int row = row_of_pass(pass);
            float xhat[values];
            float g[values];
            read_row(xhat, matrices, tile, row, 0, 0);
            read_row(g, matrices, tile, row, 0, 1);
            float sum = 0;
#pragma unroll
            for (int j = 0; j < values; ++j) {
                xhat[j] *= inverse[pass];
                of_columns[0][j] += g[j] * xhat[j];
                g[j] *= scale[j];
                sum += g[j] * xhat[j];
            }
            float mean_g_xhat = row_reduce<Add>(sum, round) / columns;
#pragma unroll
            for (int j = 0; j < values; ++j)
                g[j] = inverse[pass] * (g[j] - xhat[j] * mean_g_xhat);
            write_row(g, matrices, tile, row);
        }
        leave_with_results(matrices, i, number, tile);
    }
    finish();
    write_sums({dgamma}, of_columns);
}
