// Layer norm's backward pass for short rows; the formulas are fast_layer_norm_backward.cu's.
#define INPUTS 2
#include "short.cuh"

extern "C" __global__ void SHAPED layer_norm_backward_short(Element* dx, float* dgamma_partial,
                                                            float* dbeta_partial, const Element* dy,
                                                            const Element* x, const Element* gamma,
                                                            const float* means,
                                                            const float* inverses, long long rows) {
    float scale[values];
    read_parameters(scale, gamma);
    float dgamma[values] = {};
    float dbeta[values] = {};
    long long step = gridDim.x * static_cast<long long>(tile_rows);
    for (long long first = first_of_tile(); first < rows; first += step) {
        int here = rows_of_tile(first, rows);
        float mean[passes];
        float inverse[passes];
        read_of_rows(mean, means, first, here);
        read_of_rows(inverse, inverses, first, here);
        bring(x, first, here, 0);
        bring(dy, first, here, 1);
        __syncthreads();
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            int row = row_of_pass(pass);
            float xhat[values];
            float g[values];
            read_row(xhat, row, here, mean[pass], 0);
            read_row(g, row, here, 0, 1);
            float2 sums = {0, 0};
#pragma unroll
            for (int j = 0; j < values; ++j) {
                xhat[j] = (xhat[j] - mean[pass]) * inverse[pass];
                dgamma[j] += g[j] * xhat[j];
                dbeta[j] += g[j];
                g[j] *= scale[j];
                sums.x += g[j];
                sums.y += g[j] * xhat[j];
            }
            sums = warp_reduce<Add>(sums);
            float mean_g = sums.x / columns;
            float mean_g_xhat = sums.y / columns;
#pragma unroll
            for (int j = 0; j < values; ++j)
                g[j] = inverse[pass] * (g[j] - mean_g - xhat[j] * mean_g_xhat);
            write_row(g, row, here);
        }
        __syncthreads();
        take(dx, first, here);
        __syncthreads();
    }
    write_partial_sums(dgamma_partial, dgamma);
    write_partial_sums(dbeta_partial, dbeta);
}
