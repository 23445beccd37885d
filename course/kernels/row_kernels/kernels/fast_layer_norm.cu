// Layer norm: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, each row read once.
// Mean and 1 / sqrt(...) of each row are kept for the backward pass: two numbers instead of the
// row.
#define INPUTS 1
#include "fast.cuh"

extern "C" __global__ void SHAPED layer_norm_fast(Element* y, float* means, float* inverses,
                                                  const Element* x, const Element* gamma,
                                                  const Element* beta, long long rows,
                                                  float epsilon) {
    Tiles tiles = {{x}, rows};
    start(tiles);
    int begin = lead_in(tiles, 0, tiles.first());
    float scale[values];
    float shift[values];
    if (ring || early) {  // a thread has the same columns of all its rows
        read_parameters(scale, gamma + rank() * part, begin);
        read_parameters(shift, beta + rank() * part, begin);
    }

    int round = 0;
    long long tile = tiles.first();
    for (int i = 0; tile < tiles.count(); ++i, tile += tiles.step()) {
        wait_for_tile(i);
        float v[values];
        read_tile(v, tiles, i, tile, 0);
        int lead = lead_in(tiles, i, tile);

        float sum = 0;
#pragma unroll
        for (int j = 0; j < values; ++j)
            sum += v[j];
        float mean = all_reduce<Add>(sum, round) / columns;
        refill(tiles, i, tile);

        float squares = 0;
#pragma unroll
        for (int j = 0; j < values; ++j) {
            v[j] -= mean;
            if (has_value(j, lead))
                squares += v[j] * v[j];
        }
        float variance = all_reduce<Add>(squares, round) / columns;
        float inverse = rsqrtf(variance + epsilon);
        if (!ring &&
            !early) {  // a block has one tile; read earlier, they would only hold registers
            read_parameters(scale, gamma + rank() * part, lead);
            read_parameters(shift, beta + rank() * part, lead);
        }

#pragma unroll
        for (int j = 0; j < values; ++j)
            v[j] = v[j] * inverse * scale[j] + shift[j];
        long long row = tile * tile_rows + row_in_tile();
        if (row < rows) {
            write_row(y + row * columns + rank() * part, v);
            if (member() == 0 && rank() == 0) {
                means[row] = mean;
                inverses[row] = inverse;
            }
        }
    }
}
