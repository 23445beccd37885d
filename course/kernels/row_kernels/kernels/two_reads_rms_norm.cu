// RMS norm as fast_rms_norm.cu's, with each row read twice, the second time from the cache.
#define INPUTS 1
#include "two_reads.cuh"

extern "C" __global__ void SHAPED rms_norm_two_reads(Element* y, float* inverses, const Element* x,
                                                     const Element* gamma, long long rows,
                                                     float epsilon) {
    long long row = blockIdx.x * static_cast<long long>(tile_rows) + row_in_tile();
    bool mine = row < rows;
    const Element* from = x + (mine ? row : rows - 1) * columns;
    Element* to = y + row * columns;

    float squares = 0;
#pragma unroll
    for (int k = 0; k < packs; ++k) {
        float v[pack];
        if (!inside(k))
            continue;
        read_first(v, pack_of(from, k));
#pragma unroll
        for (int i = 0; i < pack; ++i)
            squares += v[i] * v[i];
    }
    int round = 0;
    float inverse = rsqrtf(all_reduce<Add>(squares, round) / columns + epsilon);

#pragma unroll
    for (int k = 0; k < packs; ++k) {
        if (!inside(k) || !mine)
            continue;
        float v[pack];
        float scale[pack];
        read_last(v, pack_of(from, k));
        unpack(scale, *pack_of(gamma, k));
#pragma unroll
        for (int i = 0; i < pack; ++i)
            v[i] = v[i] * inverse * scale[i];
        store_pack(to + column_of(k), v);
    }
    if (member() == 0 && mine)
        inverses[row] = inverse;
}
