// nvcc -arch=sm_80 -cubin decode_group.cu
// Decoding for groups of heads (GQA): a block has up to 8 queries that share one head of keys, and
// reads each key and value once for all of them. Tensor cores multiply 16 keys with 8 queries:
//   scores (keys x queries) = K qᵀ,     results (dim x queries) = Vᵀ weights
// Registers are the buffers. A lane fetches 16 bytes at a time, straight into what it holds of the
// products' left factors; which key and which column that is may be chosen freely, as long as
// the right factor has the same order. While a warp waits for keys its values are on their way, and
// the other way round, so that an SM has 8 KB on their way for each of its warps.
// Grid: (parts, heads of keys * blocks of 8 queries, batch), block: THREADS.
#include "decode.cuh"
#include "mma.cuh"

constexpr int QUERIES = 8;  // of a block: the columns of an mma
constexpr int KEYS = 16;  // of a warp's tile: the rows of an mma
constexpr int K_PIECES = DIM / 32;  // of 16 bytes, for each lane in each of 2 keys
constexpr int V_PIECES = DIM / 64;  // for each lane in each of 4 keys
static_assert(PAGE % KEYS == 0, "a tile of keys lies in one page");

union Piece {
    uint4 all;
    unsigned word[4];  // two numbers each
};

// Bytes that are used once: nothing is gained by keeping them in L1.
__device__ Piece fetch(const number* from) {
    Piece piece;
    piece.all = __ldcs((const uint4*)from);
    return piece;
}

// Where a lane's numbers of a head lie. In an mma it is group = lane / 4, pair = lane % 4.
struct Source {
    const number *k, *v;
    const int* pages;  // of this sequence
    long long page_k, page_v, row_k, row_v;  // strides

    // page: that of `first`, as page_of gave it.
    __device__ void keys(Piece (&to)[2][K_PIECES], int page, int first, int end) const {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            int key = min(first + lane / 4 + half * 8, end - 1);
            const number* row = k + page * page_k + (PAGE ? key % PAGE : key) * row_k;
#pragma unroll
            for (int i = 0; i < K_PIECES; ++i)
                to[half][i] = fetch(row + (i * 4 + lane % 4) * 8);
        }
    }
    __device__ void values(Piece (&to)[4][V_PIECES], int page, int first, int end) const {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int key = min(first + lane % 4 * 2 + i / 2 * 8 + i % 2, end - 1);
            const number* row = v + page * page_v + (PAGE ? key % PAGE : key) * row_v;
#pragma unroll
            for (int p = 0; p < V_PIECES; ++p)
                to[i][p] = fetch(row + (p * 8 + lane / 4) * 8);
        }
    }
    __device__ int page_of(int first, int end) const {
        return PAGE ? pages[min(first, end - 1) / (PAGE ? PAGE : 1)] : 0;
    }
};

// scores[0], [1]: key `group` with queries 2 pair and 2 pair + 1; [2], [3]: key group + 8.
__device__ void multiply_keys(float (&scores)[4], const Piece (&k)[2][K_PIECES],
                              const Piece (&q)[K_PIECES]) {
#pragma unroll
    for (int i = 0; i < K_PIECES; ++i)
#pragma unroll
        for (int w = 0; w < 4; w += 2) {
            unsigned a[4] = {k[0][i].word[w], k[1][i].word[w], k[0][i].word[w + 1],
                             k[1][i].word[w + 1]};
            mma(scores, a, &q[i].word[w]);
        }
}

// Weights of keys 2 pair and 2 pair + 1 for query `group`, from lanes that hold them for a key
// `group` and queries 2 pair and 2 pair + 1.
__device__ unsigned turned(unsigned weights) {
    int lane = threadIdx.x % 32;
    int from = lane % 4 * 8 + lane / 8;  // key 2 pair, query `group`
    unsigned first = __shfl_sync(~0u, weights, from);
    unsigned second = __shfl_sync(~0u, weights, from + 4);
    return __byte_perm(first, second, lane / 4 % 2 ? 0x7632 : 0x5410);
}

// Word e of piece p holds columns 2e and 2e + 1: rows `group` and group + 8 of product (p, e).
__device__ void add_values(float (&out)[V_PIECES][4][4], const Piece (&v)[4][V_PIECES],
                           const unsigned (&weights)[2]) {
#pragma unroll
    for (int p = 0; p < V_PIECES; ++p)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            unsigned a[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                a[i] = __byte_perm(v[i / 2 * 2][p].word[e], v[i / 2 * 2 + 1][p].word[e],
                                   i % 2 ? 0x7632 : 0x5410);
            mma(out[p][e], a, weights);
        }
}

// Softmax of a lane's two queries while the scores still come.
struct State {
    float most[2] = {-INFINITY, -INFINITY};
    float sum[2] = {0, 0};  // of this lane's keys

    // Scores to weights. factor: by what earlier weights shrink. Four groups of lanes share queries.
    __device__ void weigh(float (&scores)[4], float (&factor)[2]) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float next = fmaxf(most[j], fmaxf(scores[j], scores[j + 2]));
            for (int other = 4; other < 32; other *= 2)
                next = fmaxf(next, __shfl_xor_sync(~0u, next, other));
            factor[j] = power_of_two(most[j] - next);
            most[j] = next;
            scores[j] = power_of_two(scores[j] - next);
            scores[j + 2] = power_of_two(scores[j + 2] - next);
            sum[j] = sum[j] * factor[j] + scores[j] + scores[j + 2];
        }
    }
};

__device__ void keep(Found<QUERIES>& found, State& state, const float (&out)[V_PIECES][4][4]) {
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        int query = lane % 4 * 2 + j;
        for (int other = 4; other < 32; other *= 2)
            state.sum[j] += __shfl_xor_sync(~0u, state.sum[j], other);
        if (lane < 4) {
            found.most[warp][query] = state.most[j];
            found.sum[warp][query] = state.sum[j];
        }
#pragma unroll
        for (int p = 0; p < V_PIECES; ++p)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                int x = (p * 8 + lane / 4) * 8 + e * 2;
                found.result[warp][query][x] = out[p][e][j];
                found.result[warp][query][x + 1] = out[p][e][j + 2];
            }
    }
}

// Warp w takes the tiles w, w + WARPS, ... of the keys from `first` to before `end`.
__device__ void attend(Found<QUERIES>& found, const Source& source, const Piece (&q)[K_PIECES],
                       float scale, int first, int end) {
    int lane = threadIdx.x % 32;
    Piece k[2][K_PIECES], v[4][V_PIECES];
    State state;
    float out[V_PIECES][4][4] = {};
    first += threadIdx.x / 32 * KEYS;
    if (first < end) {
        int page = source.page_of(first, end);
        source.keys(k, page, first, end);
        source.values(v, page, first, end);
    }
    int page = source.page_of(first + KEYS * WARPS, end);  // the next tile's
    for (; first < end; first += KEYS * WARPS) {
        int next = first + KEYS * WARPS;
        int page_after = source.page_of(next + KEYS * WARPS, end);
        float scores[4] = {};
        multiply_keys(scores, k, q);
        if (next < end)
            source.keys(k, page, next, end);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            scores[i] = first + lane / 4 + i / 2 * 8 < end ? scores[i] * scale : -INFINITY;
        float factor[2];
        state.weigh(scores, factor);
        unsigned weights[2] = {turned(packed(scores[0], scores[1])),
                               turned(packed(scores[2], scores[3]))};
#pragma unroll
        for (int p = 0; p < V_PIECES; ++p)
#pragma unroll
            for (int i = 0; i < 16; ++i)
                out[p][i / 4][i % 4] *= factor[i % 2];
        add_values(out, v, weights);
        if (next < end)
            source.values(v, page, next, end);
        page = page_after;
    }
    keep(found, state, out);
}

__global__ __launch_bounds__(THREADS) void attention(number* out, float* lse, const number* q,
                                                     const number* k, const number* v,
                                                     const int* lengths, const int* table,
                                                     float* results, float* states,
                                                     unsigned* arrived, Decode d, Strides of_k,
                                                     Strides of_v) {
    __shared__ Found<QUERIES> found;
    int part = blockIdx.x;
    int batch = blockIdx.z;
    int length = lengths[batch];
    int first = part * d.chunk;
    if (first >= length)
        return;  // this sequence is shorter than the longest
    int end = min(first + d.chunk, length);
    int parts = (length + d.chunk - 1) / d.chunk;
    int blocks = (d.group + QUERIES - 1) / QUERIES;  // that share a head of keys
    int key_head = blockIdx.y / blocks;
    int query = blockIdx.y % blocks * QUERIES;  // the block's first of the group
    int count = min(d.group - query, QUERIES);
    int row = batch * d.heads + key_head * d.group + query;
    int lane = threadIdx.x % 32;
    Piece own[K_PIECES] = {};
    if (lane / 4 < count)
#pragma unroll
        for (int i = 0; i < K_PIECES; ++i)
            own[i] = fetch(q + (size_t)(row + lane / 4) * DIM + (i * 4 + lane % 4) * 8);
    Source source = {k, v, nullptr, of_k.batch, of_v.batch, of_k.row, of_v.row};
#if PAGE
    source.k += key_head * of_k.head;
    source.v += key_head * of_v.head;
    source.pages = table + (size_t)batch * d.pages;
#else
    source.k += of_k.at(batch, 0, key_head);
    source.v += of_v.at(batch, 0, key_head);
#endif
    attend(found, source, own, d.scale, first, end);
    int counter = blockIdx.z * gridDim.y + blockIdx.y;
    finish(found, out, lse, {results, states, arrived}, d, row, count, part, parts, counter);
}
