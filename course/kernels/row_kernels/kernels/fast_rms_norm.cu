// RMS norm: y = x / sqrt(mean of x^2 + epsilon) * gamma, each row read once.
// 1 / sqrt(...) of each row is kept for the backward pass.
#define INPUTS 1
#include "fast.cuh"

extern "C" __global__ void SHAPED rms_norm_fast(Element* y, float* inverses, const Element* x,
                                                const Element* gamma, long long rows,
                                                float epsilon) {
    Tiles tiles = {{x}, rows};
    start(tiles);
    int begin = lead_in(tiles, 0, tiles.first());
    float scale[values];
    if (ring || early)  // a thread has the same columns of every row
        read_parameters(scale, gamma + rank() * part, begin);

    int round = 0;
    long long tile = tiles.first();
    for (int i = 0; tile < tiles.count(); ++i, tile += tiles.step()) {
        wait_for_tile(i);
        float v[values];
        read_tile(v, tiles, i, tile, 0);

        float squares = 0;
#pragma unroll
        for (int j = 0; j < values; ++j)
            squares += v[j] * v[j];
        float inverse = rsqrtf(all_reduce<Add>(squares, round) / columns + epsilon);
        refill(tiles, i, tile);
        if (!ring && !early)  // a block has one tile; read earlier, gamma would only hold registers
            read_parameters(scale, gamma + rank() * part, lead_in(tiles, i, tile));

#pragma unroll
        for (int j = 0; j < values; ++j)
            v[j] = v[j] * inverse * scale[j];
        long long row = tile * tile_rows + row_in_tile();
        if (row < rows) {
            write_row(y + row * columns + rank() * part, v);
            if (member() == 0 && rank() == 0)
                inverses[row] = inverse;
        }
    }
}
