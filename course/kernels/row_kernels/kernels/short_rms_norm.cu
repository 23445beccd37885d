// RMS norm of short rows, many at a time; the formula is fast_rms_norm.cu's.
#define INPUTS 1
#include "short.cuh"

extern "C" __global__ void SHAPED rms_norm_short(Element* y, float* inverses, const Element* x,
                                                 const Element* gamma, long long rows,
                                                 float epsilon) {
    long long first = first_of_tile();
    int here = rows_of_tile(first, rows);
    float scale[values];
    bring(x, first, here);
    if (passes > 1)
        read_parameters(scale, gamma);
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
        int row = row_of_pass(pass);
        float v[values];
        read_row(v, row, here, 0);
        float squares = 0;
#pragma unroll
        for (int j = 0; j < values; ++j)
            squares += v[j] * v[j];
        float inverse = rsqrtf(warp_reduce<Add>(squares) / columns + epsilon);
        if (passes == 1)  // read earlier, they would only hold registers
            read_parameters(scale, gamma);
#pragma unroll
        for (int j = 0; j < values; ++j)
            v[j] = v[j] * inverse * scale[j];
        write_row(v, row, here);
        if (member() == 0 && row < here)
            inverses[first + row] = inverse;
    }
    __syncthreads();
    take(y, first, here);
}
