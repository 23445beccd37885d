// Layer norm's backward pass of rows that pass through shared memory; the formulas are
// fast_layer_norm_backward.cu's.
#define INPUTS 2
#include "short.cuh"

extern "C" __global__ void SHAPED layer_norm_backward_short(Element* dx, Sum* dgamma, Sum* dbeta,
                                                            const Element* dy, const Element* x,
                                                            const Element* gamma,
                                                            const float* means,
                                                            const float* inverses, long long rows) {
    Matrices matrices = {{x, dy}, dx, rows};
    start(matrices);
    float scale[values];
    read_parameters(scale, gamma);
    float of_columns[2][values] = {};  // dgamma, dbeta
    int round = 0;
    long long number = blockIdx.x;
    for (long long i = 0; number < matrices.tiles(); ++i, number += gridDim.x) {
        float mean[passes];
        float inverse[passes];
        Tile coming = tile_of(matrices, i, number);
        read_of_rows(mean, means, coming);
        read_of_rows(inverse, inverses, coming);
        Tile tile = arrive(matrices, i, number);
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            int row = row_of_pass(pass);
            float xhat[values];
            float g[values];
            read_row(xhat, matrices, tile, row, mean[pass], 0);
            read_row(g, matrices, tile, row, 0, 1);
            float2 sums = {0, 0};
#pragma unroll
            for (int j = 0; j < values; ++j) {
                xhat[j] = (xhat[j] - mean[pass]) * inverse[pass];
                of_columns[0][j] += g[j] * xhat[j];
                of_columns[1][j] += g[j];
                g[j] *= scale[j];
                sums.x += g[j];
                sums.y += g[j] * xhat[j];
            }
            sums = row_reduce<Add>(sums, round);
            float mean_g = sums.x / columns;
            float mean_g_xhat = sums.y / columns;
#pragma unroll
            for (int j = 0; j < values; ++j)
                g[j] = inverse[pass] * (g[j] - mean_g - xhat[j] * mean_g_xhat);
            write_row(g, matrices, tile, row);
        }
        leave_with_results(matrices, i, number, tile);
    }
    finish();
    write_sums({dgamma, dbeta}, of_columns);
}
