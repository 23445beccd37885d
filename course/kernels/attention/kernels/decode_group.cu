// nvcc -arch=sm_80 -cubin decode_group.cu
// Decoding for groups of heads (GQA): a block has up to 8 queries that share one head of keys, and
// reads each key and value once for all of them.
// Registers are the buffers: what a lane fetches is what it holds of the products. While a warp waits
// for keys its values are on their way, and the other way round: 8 KB for each warp of an SM.
// Grid: (parts, heads of keys * blocks of 8 queries, batch), block: THREADS.
#include "decode_products.cuh"

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
