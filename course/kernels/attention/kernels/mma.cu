// nvcc -arch=sm_80 -cubin mma.cu                       before Ampere: nvcc -arch=sm_75 -DHALF ...
// Flash attention with mma.sync: a warp has 16 * DOWN queries, and their scores, weights and
// results never leave its registers. What an mma gives as sums, the next one takes as its left
// factor: a lane holds the same places of either.
// K and V come by cp.async into two stages: the next tiles are on their way while these are
// multiplied. In shared memory, 16-byte piece p of row r lies at p ^ r % 8, so that neither a
// row's nor a column's pieces share banks.
// Grid: (ceil(queries / QUERIES), heads, batch), block: THREADS, dynamic shared memory: Shared.
#include "mma.cuh"
#include "softmax.cuh"

#ifndef DIM
#define DIM 128  // numbers of a head: 64 or 128
#endif
#ifndef DOWN
#define DOWN 2  // products of 16 queries that use the same keys
#endif
#ifndef KEYS
#define KEYS 64  // keys of a tile
#endif
#ifndef BLOCKS
#define BLOCKS 2  // of an SM, at the same time
#endif

constexpr int WARPS = 4, THREADS = 32 * WARPS;
constexpr int OWN = 16 * DOWN;  // queries of a warp
constexpr int QUERIES = WARPS * OWN;
constexpr int PIECES = DIM / 8;  // of 16 bytes in a row

struct Shared {
    number q[QUERIES][DIM], k[2][KEYS][DIM], v[2][KEYS][DIM];
};

__device__ const number* piece(const number (*tile)[DIM], int row, int p) {
    return &tile[row][(p ^ row % 8) * 8];
}

// Where this thread's first piece of a tile is, and how it goes on: AT_A_TIME rows further each
// time, a multiple of 8, so that all its pieces lie alike in shared memory.
struct Copies {
    static constexpr int AT_A_TIME = THREADS / PIECES;
    static_assert(AT_A_TIME % 8 == 0 && KEYS % AT_A_TIME == 0 && QUERIES % AT_A_TIME == 0);
    const number* from;
    long long stride;

    __device__ Copies(const number* rows, long long row_stride)
        : from(rows + threadIdx.x / PIECES * row_stride + threadIdx.x % PIECES * 8),
          stride(row_stride) {}

    // Starts copying ROWS rows; from row `end` on there are none, and zeros are written.
    template <int ROWS>
    __device__ void start(number (*tile)[DIM], int end) const {
        int row = threadIdx.x / PIECES;
        number* to = (number*)piece(tile, row, threadIdx.x % PIECES);
#pragma unroll
        for (int i = 0; i < ROWS; i += AT_A_TIME) {
            bool inside = row + i < end;
            copy16(to + i * DIM, inside ? from + i * stride : from - row * stride, inside);
        }
    }
    // The same where all rows are there.
    template <int ROWS>
    __device__ void start(number (*tile)[DIM]) const {
        number* to = (number*)piece(tile, threadIdx.x / PIECES, threadIdx.x % PIECES);
#pragma unroll
        for (int i = 0; i < ROWS; i += AT_A_TIME)
            copy16(to + i * DIM, from + i * stride, true);
    }
};

// scores = q kᵀ
__device__ void multiply_keys(float (&scores)[DOWN][KEYS / 2], const number (*q)[DIM],
                              const number (*k)[DIM]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 0; d < DOWN; ++d)
        for (int i = 0; i < KEYS / 2; ++i)
            scores[d][i] = 0;
#pragma unroll
    for (int p = 0; p < PIECES; p += 2) {
        unsigned a[DOWN][4];
#pragma unroll
        for (int d = 0; d < DOWN; ++d)
            load_matrices(a[d], piece(q, d * 16 + lane % 16, p + lane / 16));
#pragma unroll
        for (int key = 0; key < KEYS; key += 16) {  // two products' keys at a time
            unsigned b[4];
            load_matrices(b, piece(k, key + lane % 8 + lane / 16 * 8, p + lane / 8 % 2));
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                mma(&scores[d][key / 2], a[d], b);
                mma(&scores[d][key / 2 + 4], a[d], b + 2);
            }
        }
    }
}

// out += weights v
__device__ void add_values(float (&out)[DOWN][DIM / 2], const unsigned (&weights)[DOWN][KEYS / 4],
                           const number (*v)[DIM]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int key = 0; key < KEYS; key += 16)
#pragma unroll
        for (int p = 0; p < PIECES; p += 2) {
            unsigned b[4];
            load_matrices_transposed(b, piece(v, key + lane % 16, p + lane / 16));
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                mma(&out[d][p * 4], &weights[d][key / 4], b);
                mma(&out[d][p * 4 + 4], &weights[d][key / 4], b + 2);
            }
        }
}

// Hides the keys that a row does not see. first: the tile's first key.
__device__ void hide(float (&scores)[KEYS / 2], const Problem& p, int row, int first) {
    int column = first + threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        int end = seen(p, row + half * 8) - column;
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 4)
            for (int j = 0; j < 2; ++j)
                if (i * 2 + j >= end)
                    scores[i + half * 2 + j] = -INFINITY;
    }
}

__global__ __launch_bounds__(THREADS, BLOCKS) void attention(number* out, const number* q,
                                                             const number* k, const number* v,
                                                             float* lse, Problem p, Strides of_out,
                                                             Strides of_q, Strides of_k,
                                                             Strides of_v) {
    extern __shared__ __align__(128) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    int tile = gridDim.x - 1 - blockIdx.x;  // causal: the longest first
    int row = tile * QUERIES;
    int head = blockIdx.y;
    int batch = blockIdx.z;
    int warp_row = threadIdx.x / 32 * OWN;
    int own_row = row + warp_row + threadIdx.x % 32 / 4;
    int tiles = (seen(p, min(row + QUERIES, p.queries) - 1) + KEYS - 1) / KEYS;
    int last = max(tiles - 1, 0) * KEYS;  // of the only tile that may have fewer keys
    Copies copy_q(q + of_q.at(batch, row, head), of_q.row);
    Copies copy_k(k + of_k.at(batch, last, head / p.group), of_k.row);
    Copies copy_v(v + of_v.at(batch, last, head / p.group), of_v.row);
    Rows rows[DOWN];
    float results[DOWN][DIM / 2] = {};
    copy_q.start<QUERIES>(s.q, p.queries - row);
    copy_k.start<KEYS>(s.k[(tiles - 1) & 1], p.keys - last);
    copy_v.start<KEYS>(s.v[(tiles - 1) & 1], p.keys - last);
    close_group();
    for (int t = tiles - 1; t >= 0; --t) {
        wait_for_groups<0>();
        __syncthreads();  // everyone's copies are there, and nobody reads the tiles before
        if (t > 0) {
            copy_k.from -= KEYS * of_k.row;
            copy_v.from -= KEYS * of_v.row;
            copy_k.start<KEYS>(s.k[(t - 1) % 2]);
            copy_v.start<KEYS>(s.v[(t - 1) % 2]);
        }
        close_group();

        float scores[DOWN][KEYS / 2];
        unsigned weights[DOWN][KEYS / 4];
        multiply_keys(scores, s.q + warp_row, s.k[t % 2]);
#pragma unroll
        for (int d = 0; d < DOWN; ++d) {
            if ((t + 1) * KEYS > seen(p, row + warp_row))  // the first query does not see all
                hide(scores[d], p, own_row + d * 16, t * KEYS);
            float factor[2];
            rows[d].weigh(scores[d], p.scale, factor);
            Rows::shrink(results[d], factor);
            pack(weights[d], scores[d]);
        }
        add_values(results, weights, s.v[t % 2]);
    }
    wait_for_groups<0>();

    lse += ((size_t)batch * p.heads + head) * p.queries;
#pragma unroll
    for (int d = 0; d < DOWN; ++d) {
        rows[d].finish(results[d]);
        rows[d].store_lse(lse, p.scale, own_row + d * 16, p.queries);
#pragma unroll
        for (int i = 0; i < DIM / 2; i += 2) {  // two neighbours of a row
            int y = own_row + d * 16 + i / 2 % 2 * 8;
            int x = i / 4 * 8 + threadIdx.x % 4 * 2;
            if (y < p.queries)
                *(unsigned*)(out + of_out.at(batch, y, head) + x) =
                    packed(results[d][i], results[d][i + 1]);
        }
    }
}
