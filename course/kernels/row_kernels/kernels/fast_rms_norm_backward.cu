// RMS norm's backward pass: x and dy are read once.
//
// With xhat = x * inverse and g = dy * gamma, the row's gradient is
//   dx = inverse * (g - xhat * mean(g * xhat)),
// and dgamma is the sum of dy * xhat over the rows, added up as in layer norm's backward pass.
#define INPUTS 2
#include "partial_sums.cuh"

extern "C" __global__ void SHAPED rms_norm_backward_fast(Element* dx, float* dgamma_partial,
                                                         const Element* dy, const Element* x,
                                                         const Element* gamma,
                                                         const float* inverses, long long rows) {
    Tiles tiles = {{x, dy}, rows};
    start(tiles);
    float scale[values];
    int lead = lead_in(tiles, 0, tiles.first());
    read_parameters(scale, gamma + rank() * part, lead);
    float dgamma[values] = {};

    int round = 0;
    long long tile = tiles.first();
    long long row = tile * tile_rows + row_in_tile();
    float next_inverse = row < rows ? inverses[row] : 0;
    for (int i = 0; tile < tiles.count(); ++i, tile += tiles.step()) {
        float inverse = next_inverse;
        row = tile * tile_rows + row_in_tile();
        long long next_row = row + tiles.step() * tile_rows;
        next_inverse =
            next_row < rows ? inverses[next_row] : 0;  // asked for now, needed a tile later

        wait_for_tile(i);
        float xhat[values];
        float g[values];
        read_tile(xhat, tiles, i, tile, 0, 0);
        read_tile(g, tiles, i, tile, 0, 1);

        float sum = 0;
#pragma unroll
        for (int j = 0; j < values; ++j) {
            xhat[j] *= inverse;
            if (row < rows)
                dgamma[j] += g[j] * xhat[j];
            g[j] *= scale[j];
            sum += g[j] * xhat[j];
        }
        float mean_g_xhat = all_reduce<Add>(sum, round) / columns;
        refill(tiles, i, tile);

#pragma unroll
        for (int j = 0; j < values; ++j)
            g[j] = inverse * (g[j] - xhat[j] * mean_g_xhat);
        if (row < rows)
            write_row(dx + row * columns + rank() * part, g);
    }
    write_partial_sums(dgamma_partial, dgamma, lead);
}
