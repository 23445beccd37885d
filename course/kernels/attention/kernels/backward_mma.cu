// nvcc -arch=sm_80 -cubin backward_mma.cu           before Ampere: nvcc -arch=sm_75 -DHALF ...
// The backward pass with mma.sync, in two kernels of one form (backward.cuh has the formulas). A
// block has 64 rows of one side, 16 for each warp, and walks through the other side's rows:
//   for_keys     its own rows are K and V, the others Q and dout: it sums up dk and dv
//   for_queries  its own rows are Q and dout, the others K and V: it sums up dq
// Either way scores = own0 other0ᵀ and dp = own1 other1ᵀ, and what they become, changes and weights,
// are left factors as they lie in registers: changes other0, weights other1.
// Seven products instead of five, since either kernel computes scores and dp; but no two blocks add
// to the same number, so results are the same in every run.
// In shared memory, 16-byte piece p of row r lies at p ^ r % 8, as in mma.cu.
// Grid: (ceil(own rows / 64), heads of the own side, batch), block: THREADS, dynamic shared memory:
// Shared. rows: what prepare makes, float2 [batch, heads, places for queries].
#include "backward.cuh"
#include "mma.cuh"
#include "softmax.cuh"

#ifndef DIM
#define DIM 128  // numbers of a head: 64 or 128
#endif
#ifndef OTHERS
#define OTHERS 64  // rows of the other side in a tile
#endif

constexpr int WARPS = 4, THREADS = 32 * WARPS;
constexpr int OWN = 16 * WARPS;
constexpr int PIECES = DIM / 8;  // of 16 bytes in a row

struct Shared {
    number own[2][OWN][DIM], other[2][2][OTHERS][DIM];
    float2 rows[2][OTHERS];
};

// Two tensors whose rows go together: q and dout, or k and v.
struct Side {
    const number* tensor[2];
    Strides strides[2];
    int rows;
};

__device__ int padded(int queries) {
    return (queries + OTHERS - 1) / OTHERS * OTHERS;
}

__device__ const number* piece(const number (*tile)[DIM], int row, int p) {
    return &tile[row][(p ^ row % 8) * 8];
}

// Starts copying ROWS rows of either tensor; where there are none, zeros are written.
template <int ROWS>
__device__ void copy_rows(number (*tiles)[ROWS][DIM], const Side& side, int batch, int head,
                          int first) {
    for (int i = 0; i < 2; ++i) {
        const number* from = side.tensor[i] + side.strides[i].at(batch, first, head);
        for (int j = threadIdx.x; j < ROWS * PIECES; j += THREADS) {
            int row = j / PIECES;
            int p = j % PIECES;
            bool inside = first + row < side.rows;
            const number* source = inside ? from + row * side.strides[i].row + p * 8 : from;
            copy16((void*)piece(tiles[i], row, p), source, inside);
        }
    }
}

// d = own otherᵀ, of a warp's 16 rows.
__device__ void multiply(float (&d)[OTHERS / 2], const number (*own)[DIM],
                         const number (*other)[DIM]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < OTHERS / 2; ++i)
        d[i] = 0;
#pragma unroll
    for (int p = 0; p < PIECES; p += 2) {
        unsigned a[4];
        load_matrices(a, piece(own, threadIdx.x / 32 * 16 + lane % 16, p + lane / 16));
#pragma unroll
        for (int row = 0; row < OTHERS; row += 16) {  // two products' rows at a time
            unsigned b[4];
            load_matrices(b, piece(other, row + lane % 8 + lane / 16 * 8, p + lane / 8 % 2));
            mma(&d[row / 2], a, b);
            mma(&d[row / 2 + 4], a, b + 2);
        }
    }
}

// d += factors other
__device__ void add(float (&d)[DIM / 2], const unsigned (&factors)[OTHERS / 4],
                    const number (*other)[DIM]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int row = 0; row < OTHERS; row += 16)
#pragma unroll
        for (int p = 0; p < PIECES; p += 2) {
            unsigned b[4];
            load_matrices_transposed(b, piece(other, row + lane % 16, p + lane / 16));
            mma(&d[p * 4], &factors[row / 4], b);
            mma(&d[p * 4 + 4], &factors[row / 4], b + 2);
        }
}

// Which row of its 16, and which column of a tile, a thread's number i is of.
__device__ int row_of(int i) {
    return threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
}
__device__ int column_of(int i) {
    return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
}

// Scores to weights, and dp to changes of scores. of_row, of_column: (lse, delta) of a query.
template <bool FOR_KEYS>
__device__ void weigh(float (&scores)[OTHERS / 2], float (&dp)[OTHERS / 2], const Problem& p,
                      const float2 (&of_row)[2], const float2* of_column, int own, int other,
                      bool hides) {
#pragma unroll
    for (int i = 0; i < OTHERS / 2; ++i) {
        float2 query = FOR_KEYS ? of_column[column_of(i)] : of_row[i / 2 % 2];
        int y = own + row_of(i);
        int x = other + column_of(i);
        bool hidden = hides && (FOR_KEYS ? y >= seen(p, x) : x >= seen(p, y));
        scores[i] = hidden ? 0 : power_of_two(scores[i] * p.scale - query.x);
        dp[i] = scores[i] * (dp[i] - query.y);
    }
}

__device__ void store(number* to, const Strides& strides, int batch, int head, int first, int rows,
                      const float (&d)[DIM / 2], float factor) {
#pragma unroll
    for (int i = 0; i < DIM / 2; i += 2) {  // two neighbours of a row
        int y = first + row_of(i);
        if (y < rows)
            *(unsigned*)(to + strides.at(batch, y, head) + column_of(i)) =
                packed(d[i] * factor, d[i + 1] * factor);
    }
}

// of_changes: dk or dq, of_weights: dv.
template <bool FOR_KEYS>
__device__ void walk(const Side& own_side, const Side& other_side, const float2* rows,
                     const Problem& p, float (&of_changes)[DIM / 2], float (&of_weights)[DIM / 2]) {
    extern __shared__ __align__(128) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    int first = blockIdx.x * OWN;
    int head = blockIdx.y;
    int batch = blockIdx.z;
    int warp_row = first + threadIdx.x / 32 * 16;
    int other_head = FOR_KEYS ? head * p.group : head / p.group;  // and those that follow it
    // tiles of the other side in each head: from the first that sees a key, or to the last seen
    int begin = FOR_KEYS ? first_to_see(p, first) / OTHERS : 0;
    int end = FOR_KEYS ? p.queries : seen(p, min(first + OWN, p.queries) - 1);
    int tiles = (end + OTHERS - 1) / OTHERS - begin;
    int steps = tiles * (FOR_KEYS ? p.group : 1);
    size_t places = (size_t)padded(p.queries);
    auto start = [&](int step) {
        int from = (begin + step % tiles) * OTHERS;
        int now = other_head + step / tiles;
        copy_rows<OTHERS>(s.other[step % 2], other_side, batch, now, from);
        const float2* those = rows + ((size_t)batch * p.heads + now) * places + from;
        if (FOR_KEYS && threadIdx.x < OTHERS / 2)
            copy16(&s.rows[step % 2][threadIdx.x * 2], those + threadIdx.x * 2, true);
    };
    float2 of_row[2] = {};
    for (int half = 0; half < 2 && !FOR_KEYS; ++half) {
        int row = min(warp_row + row_of(half * 2), p.queries - 1);
        of_row[half] = rows[((size_t)batch * p.heads + head) * places + row];
    }
    copy_rows<OWN>(s.own, own_side, batch, head, first);
    if (steps > 0)
        start(0);
    close_group();
    for (int step = 0; step < steps; ++step) {
        wait_for_groups<0>();
        __syncthreads();  // everyone's copies are there, and nobody reads the tiles before
        if (step + 1 < steps)
            start(step + 1);
        close_group();

        int other = (begin + step % tiles) * OTHERS;
        int last_key = FOR_KEYS ? first + OWN : other + OTHERS;
        bool hides = last_key > seen(p, FOR_KEYS ? other : first);
        float scores[OTHERS / 2], dp[OTHERS / 2];
        unsigned factors[OTHERS / 4];
        number(*tiles_now)[OTHERS][DIM] = s.other[step % 2];
        multiply(scores, s.own[0], tiles_now[0]);
        multiply(dp, s.own[1], tiles_now[1]);
        weigh<FOR_KEYS>(scores, dp, p, of_row, s.rows[step % 2], warp_row, other, hides);
        if (FOR_KEYS) {
            pack(factors, scores);
            add(of_weights, factors, tiles_now[1]);
        }
        pack(factors, dp);
        add(of_changes, factors, tiles_now[0]);
    }
    wait_for_groups<0>();
}

__global__ __launch_bounds__(THREADS, 2) void for_keys(number* dk, number* dv, const number* q,
                                                       const number* k, const number* v,
                                                       const number* dout, const float2* rows,
                                                       Problem p, Strides of_dk, Strides of_dv,
                                                       Strides of_q, Strides of_k, Strides of_v,
                                                       Strides of_dout) {
    Side keys = {{k, v}, {of_k, of_v}, p.keys};
    Side queries = {{q, dout}, {of_q, of_dout}, p.queries};
    float sum_k[DIM / 2] = {}, sum_v[DIM / 2] = {};
    walk<true>(keys, queries, rows, p, sum_k, sum_v);
    int first = blockIdx.x * OWN + threadIdx.x / 32 * 16;
    store(dk, of_dk, blockIdx.z, blockIdx.y, first, p.keys, sum_k, p.scale * LN_2);
    store(dv, of_dv, blockIdx.z, blockIdx.y, first, p.keys, sum_v, 1);
}

__global__ __launch_bounds__(THREADS, 2) void for_queries(number* dq, const number* q,
                                                          const number* k, const number* v,
                                                          const number* dout, const float2* rows,
                                                          Problem p, Strides of_dq, Strides of_q,
                                                          Strides of_k, Strides of_v,
                                                          Strides of_dout) {
    Side keys = {{k, v}, {of_k, of_v}, p.keys};
    Side queries = {{q, dout}, {of_q, of_dout}, p.queries};
    float sum[DIM / 2] = {}, none[DIM / 2];
    walk<false>(queries, keys, rows, p, sum, none);
    int first = blockIdx.x * OWN + threadIdx.x / 32 * 16;
    store(dq, of_dq, blockIdx.z, blockIdx.y, first, p.queries, sum, p.scale * LN_2);
}

// (lse in powers of 2, delta) of each query; lse is infinite where it sees no key, or where a tile
// has more places than there are queries: then all its weights are 0.
// Grid: (places / WARPS, heads, batch), block: THREADS, a warp for each query.
__global__ void prepare(float2* rows, const number* out, const number* dout, const float* lse,
                        Problem p, Strides of_out, Strides of_dout) {
    int row = blockIdx.x * WARPS + threadIdx.x / 32;
    int head = blockIdx.y;
    int batch = blockIdx.z;
    int lane = threadIdx.x % 32;
    float2 own = {INFINITY, 0};
    if (row < p.queries) {
        for (int x = lane; x < DIM; x += 32)
            own.y += (float)out[of_out.at(batch, row, head) + x] *
                     (float)dout[of_dout.at(batch, row, head) + x];
        for (int other = 16; other > 0; other /= 2)
            own.y += __shfl_xor_sync(~0u, own.y, other);
        float own_lse = lse[place_of(p, batch, head, row)];
        own.x = own_lse > -INFINITY ? own_lse * LOG2_E : INFINITY;
    }
    if (lane == 0 && row < padded(p.queries))
        rows[((size_t)batch * p.heads + head) * padded(p.queries) + row] = own;
}
