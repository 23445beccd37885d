// nvcc -arch=sm_75 -cubin online.cu
// Attention in one kernel: a block has 16 queries and walks through the keys, 32 at a time. It
// keeps of each query the largest score, the sum of the weights and the result so far, relative to
// that largest score; a larger one shrinks what was added before (online softmax). Scores are never
// stored. Float32, tiles in shared memory.
// Grid: (ceil(queries / 16), heads, batch), block: 256 threads. A warp has two queries, and of a
// tile each of its lanes has one key.
#include "problem.cuh"

#ifndef DIM
#define DIM 128
#endif

constexpr int QUERIES = 16, KEYS = 32, WARPS = 8;
constexpr int OWN = QUERIES / WARPS;  // queries of a warp
constexpr int COLUMNS = DIM / 32;  // of a result, for each lane

// Copies ROWS rows of a head, zeros where there are none. PITCH: from row to row in shared memory.
template <int ROWS, int PITCH>
__device__ void load(float (*tile)[PITCH], const float* from, long long stride, int rows) {
    for (int i = threadIdx.x; i < ROWS * DIM; i += blockDim.x) {
        int row = i / DIM;
        int x = i % DIM;
        tile[row][x] = row < rows ? from[row * stride + x] : 0;
    }
}

__global__ __launch_bounds__(256) void attention(float* out, const float* q, const float* k,
                                                 const float* v, float* lse, Problem p,
                                                 Strides of_out, Strides of_q, Strides of_k,
                                                 Strides of_v) {
    __shared__ float tile_q[QUERIES][DIM];
    __shared__ float tile_k[KEYS][DIM + 1];  // lanes read a column: no two the same bank
    __shared__ float tile_v[KEYS][DIM];
    __shared__ float weights[QUERIES][KEYS];
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    int row = blockIdx.x * QUERIES;
    int head = blockIdx.y;
    int batch = blockIdx.z;
    float most[OWN], sum[OWN], result[OWN][COLUMNS] = {};
    for (int i = 0; i < OWN; ++i) {
        most[i] = -INFINITY;
        sum[i] = 0;
    }
    load<QUERIES>(tile_q, q + of_q.at(batch, row, head), of_q.row, p.queries - row);

    int end = seen(p, min(row + QUERIES, p.queries) - 1);  // keys that the block's last query sees
    for (int first = 0; first < end; first += KEYS) {
        __syncthreads();  // all have used the tiles before
        load<KEYS>(tile_k, k + of_k.at(batch, first, head / p.group), of_k.row, p.keys - first);
        load<KEYS>(tile_v, v + of_v.at(batch, first, head / p.group), of_v.row, p.keys - first);
        __syncthreads();
        for (int i = 0; i < OWN; ++i) {
            int y = warp * OWN + i;
            float score = 0;
            for (int x = 0; x < DIM; ++x)
                score += tile_q[y][x] * tile_k[lane][x];
            score = first + lane < seen(p, row + y) ? score * p.scale : -INFINITY;

            float largest = fmaxf(most[i], score);
            for (int other = 16; other > 0; other /= 2)
                largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, other));
            float shift = largest == -INFINITY ? 0 : largest;  // -inf - -inf would be NaN
            float factor = exp2f(most[i] - shift);
            float weight = exp2f(score - shift);
            most[i] = largest;
            sum[i] = sum[i] * factor + weight;  // of this lane's keys
            weights[y][lane] = weight;
            __syncwarp();
            for (int c = 0; c < COLUMNS; ++c) {
                result[i][c] *= factor;
                for (int key = 0; key < KEYS; ++key)
                    result[i][c] += weights[y][key] * tile_v[key][c * 32 + lane];
            }
        }
    }
    const float LN_2 = 0.69314718f;
    for (int i = 0; i < OWN; ++i) {
        int y = row + warp * OWN + i;
        for (int other = 16; other > 0; other /= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], other);
        if (y >= p.queries)
            continue;
        float* mine = out + of_out.at(batch, y, head);
        for (int c = 0; c < COLUMNS; ++c)
            mine[c * 32 + lane] = sum[i] > 0 ? result[i][c] / sum[i] : 0;  // 0: it sees no key
        if (lane == 0)
            lse[((size_t)batch * p.heads + head) * p.queries + y] =
                (most[i] + log2f(sum[i])) * LN_2;
    }
}
