// The fused block's backward pass. What dropout dropped and what gelu was given is computed again.
//
// With normed = (hidden - mean) * inverse and g = dy * gamma,
//   dhidden = dout + inverse * (g - mean(g) - normed * mean(g * normed)): the residual's gradient,
//   dx = dhidden * dropout's factor * gelu'(x + bias).
// The parameters' gradients are sums over rows: of dy * normed, of dy, of dx. A thread has the same
// columns of every row that its block takes, so it adds them up in registers; a second kernel adds
// up the blocks. Grid: as many blocks as run at a time, block: THREADS.
//
// Rows come through a ring of STAGES in shared memory: while one is worked on, the next are on
// their way. Every thread copies and reads its own part only, so the ring needs no barrier.
// Dynamic shared memory: STAGES * INPUTS * PACKS * THREADS * 16 bytes.
#include "async_copy.cuh"
#include "block.cuh"

#ifndef STAGES
#define STAGES 3
#endif

constexpr int INPUTS = 4;
enum Input { DY, DOUT, HIDDEN, X };
using Ring = uint4[STAGES][INPUTS][PACKS][THREADS];

// Asks for this thread's part of a row's four inputs.
__device__ inline void ask_for(Ring& ring, int stage, const bf16* const (&inputs)[INPUTS],
                               long long row, bool there) {
#pragma unroll
    for (int input = 0; input < INPUTS; ++input)
#pragma unroll
        for (int k = 0; k < PACKS; ++k)
            if (there && inside(k))
                copy16(&ring[stage][input][k][threadIdx.x],
                       inputs[input] + row * COLUMNS + column_of(k));
    close_copies();
}

// This thread's 8 numbers of one input.
__device__ inline void read(float* to, const Ring& ring, int stage, Input input, int k) {
    unpack(to, inside(k) ? ring[stage][input][k][threadIdx.x] : make_uint4(0, 0, 0, 0));
}

// What a thread adds up over rows, and what it needs for every row.
struct Columns {
    float dgamma[VALUES], dbeta[VALUES], dbias[VALUES];
    uint4 gamma[PACKS], bias[PACKS];
};

// normed, and g = dy * gamma; returns the sums over the row of g and of g * normed.
__device__ inline float2 normed_and_g(float (&normed)[VALUES], float (&g)[VALUES], Columns& c,
                                      const Ring& ring, int stage, float2 statistics) {
    float2 sums = {0, 0};
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        float gamma[PACK];
        unpack(gamma, c.gamma[k]);
        read(&normed[k * PACK], ring, stage, HIDDEN, k);
        read(&g[k * PACK], ring, stage, DY, k);
#pragma unroll
        for (int i = 0; i < PACK; ++i) {
            int j = k * PACK + i;
            normed[j] = (normed[j] - statistics.x) * statistics.y;
            c.dgamma[j] += g[j] * normed[j];
            c.dbeta[j] += g[j];
            g[j] *= gamma[i];
            sums.x += inside(k) ? g[j] : 0;
            sums.y += inside(k) ? g[j] * normed[j] : 0;
        }
    }
    return sums;
}

// From dhidden to dx, in place.
__device__ inline void through_gelu(float (&d)[VALUES], Columns& c, const Ring& ring, int stage,
                                    long long first, unsigned long long seed, unsigned threshold) {
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        float u[PACK], bias[PACK], factors[PACK];
        read(u, ring, stage, X, k);
        unpack(bias, c.bias[k]);
        dropout(factors, first + column_of(k), seed, threshold);
#pragma unroll
        for (int i = 0; i < PACK; ++i) {
            int j = k * PACK + i;
            d[j] = rounded(d[j]) * factors[i] * gelu_slope(u[i] + bias[i]);
            c.dbias[j] += d[j];
        }
    }
}

__device__ inline void write_sums(float* partial, const float (&sums)[VALUES]) {
    for (int k = 0; k < PACKS; ++k)
        for (int i = 0; i < PACK; i += 4) {
            const float* four = &sums[k * PACK + i];
            float* to = partial + (size_t)blockIdx.x * COLUMNS + column_of(k) + i;
            if (inside(k))
                *(float4*)to = make_float4(four[0], four[1], four[2], four[3]);
        }
}

// partial: [3][blocks][COLUMNS], sums of dgamma, dbeta and dbias.
__global__ void SHAPED block_backward(bf16* dx, bf16* dresidual, float* partial, const bf16* dy,
                                      const bf16* dout, const bf16* hidden, const bf16* x,
                                      const float2* statistics, const bf16* bias, const bf16* gamma,
                                      int rows, unsigned long long seed, unsigned threshold) {
    extern __shared__ __align__(16) unsigned char bytes[];
    Ring& ring = *(Ring*)bytes;
    const bf16* const inputs[INPUTS] = {dy, dout, hidden, x};
    Columns c = {};
    fetch(c.gamma, gamma, false);
    fetch(c.bias, bias, false);
    for (int stage = 0; stage < STAGES; ++stage) {
        long long row = blockIdx.x + (long long)stage * gridDim.x;
        ask_for(ring, stage, inputs, row, row < rows);
    }
    int stage = 0;
    int turn = 0;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        float2 of_row = statistics[row];
        wait_for_copies<STAGES - 1>();
        float normed[VALUES], d[VALUES];
        float2 sums = normed_and_g(normed, d, c, ring, stage, of_row);
        sums = sum_of_block(sums, turn ^= 1);
        float mean_g = sums.x / COLUMNS;
        float mean_g_normed = sums.y / COLUMNS;
#pragma unroll
        for (int k = 0; k < PACKS; ++k) {
            float from_above[PACK];
            read(from_above, ring, stage, DOUT, k);
#pragma unroll
            for (int i = 0; i < PACK; ++i) {
                int j = k * PACK + i;
                float through_norm = d[j] - mean_g - normed[j] * mean_g_normed;
                d[j] = from_above[i] + of_row.y * through_norm;
            }
        }
        write_row(dresidual + row * COLUMNS, d);
        through_gelu(d, c, ring, stage, row * COLUMNS, seed, threshold);
        write_row(dx + row * COLUMNS, d);
        long long next = row + (long long)STAGES * gridDim.x;
        ask_for(ring, stage, inputs, next, next < rows);
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }
    size_t all = (size_t)gridDim.x * COLUMNS;
    write_sums(partial, c.dgamma);
    write_sums(partial + all, c.dbeta);
    write_sums(partial + 2 * all, c.dbias);
}

// Adds up the blocks. out: [3][COLUMNS]. Grid: (COLUMNS / 32, 3), block: (32, 8).
__global__ void add_blocks(float* out, const float* partial, int blocks) {
    __shared__ float of_rows[8][32];
    int column = blockIdx.x * 32 + threadIdx.x;
    const float* from = partial + (size_t)blockIdx.y * blocks * COLUMNS + column;
    float sum = 0;
    for (int block = threadIdx.y; column < COLUMNS && block < blocks; block += 8)
        sum += from[(size_t)block * COLUMNS];
    of_rows[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= COLUMNS)
        return;
    for (int y = 1; y < 8; ++y)
        sum += of_rows[y][threadIdx.x];
    out[blockIdx.y * COLUMNS + column] = sum;
}
