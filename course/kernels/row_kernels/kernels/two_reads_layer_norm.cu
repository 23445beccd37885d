// Layer norm as fast_layer_norm.cu's, with each row read twice, the second time from the cache.
#define INPUTS 1
#include "two_reads.cuh"

extern "C" __global__ void SHAPED layer_norm_two_reads(Element* y, float* means, float* inverses,
                                                       const Element* x, const Element* gamma,
                                                       const Element* beta, long long rows,
                                                       float epsilon) {
    long long row = blockIdx.x * static_cast<long long>(tile_rows) + row_in_tile();
    bool mine = row < rows;
    const Element* from = x + (mine ? row : rows - 1) * columns;
    Element* to = y + row * columns;

    Moments moments = {};
#pragma unroll
    for (int k = 0; k < packs; ++k) {
        float v[pack];
        if (inside(k)) {
            read_first(v, pack_of(from, k));
            moments = merge(moments, moments_of(v));
        }
    }
    moments = all_merge(moments);
    float inverse = rsqrtf(moments.squares / columns + epsilon);

#pragma unroll
    for (int k = 0; k < packs; ++k) {
        if (!inside(k) || !mine)
            continue;
        float v[pack];
        float scale[pack];
        float shift[pack];
        read_last(v, pack_of(from, k));
        unpack(scale, *pack_of(gamma, k));
        unpack(shift, *pack_of(beta, k));
#pragma unroll
        for (int i = 0; i < pack; ++i)
            v[i] = (v[i] - moments.mean) * inverse * scale[i] + shift[i];
        store_pack(to + column_of(k), v);
    }
    if (member() == 0 && mine) {
        means[row] = moments.mean;
        inverses[row] = inverse;
    }
}
