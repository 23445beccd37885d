// Layer norm's backward pass: x and dy are read once.
//
// With xhat = (x - mean) * inverse and g = dy * gamma, the row's gradient is
//   dx = inverse * (g - mean(g) - xhat * mean(g * xhat)),
// and the parameters' gradients are sums over the rows: dgamma of dy * xhat, dbeta of dy. A thread
// has the same columns of every row, so it adds them up in registers; each cluster writes one row
// of partial sums at the end, and a second, small kernel adds those up.
#define INPUTS 2
#include "partial_sums.cuh"

extern "C" __global__ void SHAPED layer_norm_backward_fast(Element* dx, float* dgamma_partial,
                                                           float* dbeta_partial, const Element* dy,
                                                           const Element* x, const Element* gamma,
                                                           const float* means,
                                                           const float* inverses, long long rows) {
    Tiles tiles = {{x, dy}, rows};
    start(tiles);
    float scale[values];
    int lead = lead_in(tiles, 0, tiles.first());
    read_parameters(scale, gamma + rank() * part, lead);
    float dgamma[values] = {};
    float dbeta[values] = {};

    int round = 0;
    long long tile = tiles.first();
    long long row = tile * tile_rows + row_in_tile();
    float next_mean = row < rows ? means[row] : 0;
    float next_inverse = row < rows ? inverses[row] : 0;
    for (int i = 0; tile < tiles.count(); ++i, tile += tiles.step()) {
        float mean = next_mean;
        float inverse = next_inverse;
        row = tile * tile_rows + row_in_tile();
        long long next_row = row + tiles.step() * tile_rows;
        next_mean = next_row < rows ? means[next_row] : 0;  // asked for now, needed a tile later
        next_inverse = next_row < rows ? inverses[next_row] : 0;

        wait_for_tile(i);
        float xhat[values];
        float g[values];
        read_tile(xhat, tiles, i, tile, mean, 0);
        read_tile(g, tiles, i, tile, 0, 1);

        float2 sums = {0, 0};
#pragma unroll
        for (int j = 0; j < values; ++j) {
            xhat[j] = (xhat[j] - mean) * inverse;
            if (row < rows) {
                dgamma[j] += g[j] * xhat[j];
                dbeta[j] += g[j];
            }
            g[j] *= scale[j];
            sums.x += g[j];
            sums.y += g[j] * xhat[j];
        }
        sums = all_reduce<Add>(sums, round);
        refill(tiles, i, tile);

        float mean_g = sums.x / columns;
        float mean_g_xhat = sums.y / columns;
#pragma unroll
        for (int j = 0; j < values; ++j)
            g[j] = inverse * (g[j] - mean_g - xhat[j] * mean_g_xhat);
        if (row < rows)
            write_row(dx + row * columns + rank() * part, g);
    }
    write_partial_sums(dgamma_partial, dgamma, lead);
    write_partial_sums(dbeta_partial, dbeta, lead);
}
