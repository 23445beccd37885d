// Softmax of each row, read once and written once, at any length that the registers of a cluster
// hold.
#define INPUTS 1
#include "fast.cuh"

extern "C" __global__ void SHAPED softmax_fast(Element* out, const Element* x, long long rows) {
    Tiles tiles = {{x}, rows};
    start(tiles);
    int round = 0;
    long long tile = tiles.first();
    for (int i = 0; tile < tiles.count(); ++i, tile += tiles.step()) {
        wait_for_tile(i);
        float v[values];
        read_tile(v, tiles, i, tile, Max::neutral());

        float largest = Max::neutral();
#pragma unroll
        for (int j = 0; j < values; ++j)
            largest = fmaxf(largest, v[j]);
        largest = all_reduce<Max>(largest, round);
        refill(tiles, i, tile);

        float sum = 0;
#pragma unroll
        for (int j = 0; j < values; ++j) {
            v[j] = expf(v[j] - largest);
            sum += v[j];
        }
        float scale = 1 / all_reduce<Add>(sum, round);

#pragma unroll
        for (int j = 0; j < values; ++j)
            v[j] *= scale;
        long long row = tile * tile_rows + row_in_tile();
        if (row < rows)
            write_row(out + row * columns + rank() * part, v);
    }
}
