// Layer norm of short rows, many at a time; the formula is fast_layer_norm.cu's.
#define INPUTS 1
#include "short.cuh"

extern "C" __global__ void SHAPED layer_norm_short(Element* y, float* means, float* inverses,
                                                   const Element* x, const Element* gamma,
                                                   const Element* beta, long long rows,
                                                   float epsilon) {
    long long first = first_of_tile();
    int here = rows_of_tile(first, rows);
    float scale[values];
    float shift[values];
    bring(x, first, here);
    if (passes > 1) {
        read_parameters(scale, gamma);
        read_parameters(shift, beta);
    }
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
        int row = row_of_pass(pass);
        float v[values];
        read_row(v, row, here, 0);
        float sum = 0;
#pragma unroll
        for (int j = 0; j < values; ++j)
            sum += v[j];
        float mean = warp_reduce<Add>(sum) / columns;
        float squares = 0;
#pragma unroll
        for (int j = 0; j < values; ++j) {
            v[j] -= mean;
            if (has_value(j))
                squares += v[j] * v[j];
        }
        float variance = warp_reduce<Add>(squares) / columns;
        float inverse = rsqrtf(variance + epsilon);
        if (passes == 1) {  // read earlier, they would only hold registers
            read_parameters(scale, gamma);
            read_parameters(shift, beta);
        }
#pragma unroll
        for (int j = 0; j < values; ++j)
            v[j] = v[j] * inverse * scale[j] + shift[j];
        write_row(v, row, here);
        if (member() == 0 && row < here) {
            means[first + row] = mean;
            inverses[first + row] = inverse;
        }
    }
    __syncthreads();
    take(y, first, here);
}
