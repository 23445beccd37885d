// hidden = residual + dropout(gelu(x + bias)), y = layer_norm(hidden): one kernel, and nothing in
// between goes to memory. Grid: rows, block: THREADS.
#include "block.cuh"

// statistics: a row's mean and 1 / its deviation, for the backward pass.
__global__ void SHAPED block_forward(bf16* y, bf16* hidden, float2* statistics, const bf16* x,
                                     const bf16* residual, const bf16* bias, const bf16* gamma,
                                     const bf16* beta, unsigned long long seed, unsigned threshold,
                                     float epsilon) {
    long long first = (long long)blockIdx.x * COLUMNS;
    uint4 of_x[PACKS], of_residual[PACKS], of_bias[PACKS];
    fetch(of_x, x + first);
    fetch(of_residual, residual + first);
    fetch(of_bias, bias, false);

    float h[VALUES];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        float u[PACK], b[PACK], factors[PACK];
        unpack(u, of_x[k]);
        unpack(b, of_bias[k]);
        unpack(&h[k * PACK], of_residual[k]);
        dropout(factors, first + column_of(k), seed, threshold);
#pragma unroll
        for (int i = 0; i < PACK; ++i) {
            float& v = h[k * PACK + i];
            v = rounded(v + factors[i] * gelu(u[i] + b[i]));
            sum += inside(k) ? v : 0;
        }
    }
    write_row(hidden + first, h);

    float mean = sum_of_block(make_float2(sum, 0), 0).x / COLUMNS;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < VALUES; ++i)
        squares += inside(i / PACK) ? (h[i] - mean) * (h[i] - mean) : 0;
    float variance = sum_of_block(make_float2(squares, 0), 1).x / COLUMNS;
    float inverse = rsqrtf(variance + epsilon);
    if (threadIdx.x == 0)
        statistics[blockIdx.x] = make_float2(mean, inverse);

#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        float g[PACK] = {}, b[PACK] = {};
        if (inside(k)) {
            unpack(g, __ldg((const uint4*)(gamma + column_of(k))));
            unpack(b, __ldg((const uint4*)(beta + column_of(k))));
        }
#pragma unroll
        for (int i = 0; i < PACK; ++i)
            h[k * PACK + i] = (h[k * PACK + i] - mean) * inverse * g[i] + b[i];
    }
    write_row(y + first, h);
}
