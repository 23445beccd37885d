// nvcc -arch=sm_80 -cubin decode_ring.cu
// Decoding for groups of heads, for large caches. As decode_group.cu, but keys and values come by
// cp.async into a ring of tiles, each warp's own, so that no warp waits for another. A warp copies
// whole rows; loads into registers ask for 64 bytes of each of 8 keys at a time.
// Grid: (parts, heads of keys * blocks of 8 queries, batch), block: THREADS, dynamic shared memory:
// STAGES tiles for each warp.
#include "decode_products.cuh"

#ifndef STAGES
#define STAGES 2  // tiles of each warp in shared memory
#endif

constexpr int PIECES = DIM / 8;  // of 16 bytes in a row

// Keys and values of a warp's tile. Pieces of a row are turned about, so that neither reading
// keys (8 rows, 4 neighbouring pieces) nor values (4 rows, 8 pieces) hits a bank twice.
struct Tile {
    number k[KEYS][DIM], v[KEYS][DIM];
};
__device__ int at(int row, int piece) {
    return (piece ^ (row % 2 * 4 + row / 2 % 4 * 2) % PIECES) * 8;
}
__device__ Piece read(const number (*rows)[DIM], int row, int piece) {
    Piece result;
    result.all = *(const uint4*)&rows[row][at(row, piece)];
    return result;
}

// Where a lane's numbers of a head lie. In an mma it is group = lane / 4, pair = lane % 4.
struct Source {
    const number *k, *v;
    const int* pages;  // of this sequence
    long long page_k, page_v, row_k, row_v;  // strides

    // Starts the copies of the keys and values from `first` on. page: as page_of gave it for `first`.
    __device__ void start(Tile& tile, int page, int first, int end) const {
        copy(tile.k, k + page * page_k, row_k, first, end);
        copy(tile.v, v + page * page_v, row_v, first, end);
    }
    // Behind the sequence's end its last row stands in.
    __device__ static void copy(number (*to)[DIM], const number* from, long long stride, int first,
                                int end) {
        int lane = threadIdx.x % 32;
        int piece = lane % PIECES;
#pragma unroll
        for (int i = 0; i < KEYS; i += 32 / PIECES) {
            int row = i + lane / PIECES;
            int key = min(first + row, end - 1);
            copy16(&to[row][at(row, piece)], from + row_of(key) * stride + piece * 8, true);
        }
    }
    __device__ static long long row_of(int key) {
#if PAGE
        return key % PAGE;
#else
        return key;
#endif
    }
    __device__ int page_of(int first, int end) const {
        return PAGE ? pages[min(first, end - 1) / (PAGE ? PAGE : 1)] : 0;
    }
};

// Warp w takes the tiles w, w + WARPS, ... of the keys from `first` to before `end`.
__device__ void attend(Found<QUERIES>& found, Tile* tiles, const Source& source,
                       const Piece (&q)[K_PIECES], float scale, int first, int end) {
    constexpr int STEP = KEYS * WARPS;
    int lane = threadIdx.x % 32;
    State state;
    float out[V_PIECES][4][4] = {};
    first += threadIdx.x / 32 * KEYS;
    int next = first;  // the first key of the tile that is asked for next
    int page = source.page_of(next, end);
    auto ask = [&](int stage) {
        if (next < end)
            source.start(tiles[stage], page, next, end);
        close_group();
        next += STEP;
        page = source.page_of(next, end);
    };
    for (int s = 0; s < STAGES; ++s)
        ask(s);
    int stage = 0;
    for (; first < end; first += STEP) {
        wait_for_groups<STAGES - 1>();
        __syncwarp();  // all lanes' copies are there
        const Tile& tile = tiles[stage];
        Piece k[2][K_PIECES], v[4][V_PIECES];
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int i = 0; i < K_PIECES; ++i)
                k[half][i] = read(tile.k, lane / 4 + half * 8, i * 4 + lane % 4);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int p = 0; p < V_PIECES; ++p)
                v[i][p] = read(tile.v, lane % 4 * 2 + i / 2 * 8 + i % 2, p * 8 + lane / 4);
        __syncwarp();  // nobody reads the tile any more
        ask(stage);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        float scores[4] = {};
        multiply_keys(scores, k, q);
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
    extern __shared__ __align__(128) unsigned char raw[];
    Tile* tiles = (Tile*)raw + threadIdx.x / 32 * STAGES;
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
            own[i].all =
                *(const uint4*)(q + (size_t)(row + lane / 4) * DIM + (i * 4 + lane % 4) * 8);
    Source source = {k, v, nullptr, of_k.batch, of_v.batch, of_k.row, of_v.row};
#if PAGE
    source.k += key_head * of_k.head;
    source.v += key_head * of_v.head;
    source.pages = table + (size_t)batch * d.pages;
#else
    source.k += of_k.at(batch, 0, key_head);
    source.v += of_v.at(batch, 0, key_head);
#endif
    attend(found, tiles, source, own, d.scale, first, end);
    int counter = blockIdx.z * gridDim.y + blockIdx.y;
    finish(found, out, lse, {results, states, arrived}, d, row, count, part, parts, counter);
}
