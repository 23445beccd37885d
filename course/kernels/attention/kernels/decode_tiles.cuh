// How the last decoding rungs bring keys and values: by cp.async into a ring of tiles in shared
// memory, each warp's own, so that no warp waits for another. A warp copies whole rows; loads into
// registers ask for 64 bytes of each of 8 keys at a time.
#pragma once
#include "decode_products.cuh"

#ifndef STAGES
#define STAGES 2  // tiles of each warp in shared memory
#endif
#ifndef PASSING
#define PASSING 0  // 1: lines leave L2 before others, which then need not be written back
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

// Starts a copy of 16 bytes.
__device__ void copy_piece(void* to, const void* from) {
#if PASSING
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile(
        "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
        "l"(from), "l"(policy));
#else
    copy16(to, from, true);
#endif
}

// Where keys and values of a head lie: k and v on those of its sequence, or of page 0.
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
            copy_piece(&to[row][at(row, piece)], from + row_of(key) * stride + piece * 8);
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

__device__ Source source_of(const number* k, const number* v, const int* table, const Decode& d,
                            const Strides& of_k, const Strides& of_v, int batch, int key_head) {
    Source source = {k, v, nullptr, of_k.batch, of_v.batch, of_k.row, of_v.row};
#if PAGE
    source.k += key_head * of_k.head;
    source.v += key_head * of_v.head;
    source.pages = table + (size_t)batch * d.pages;
#else
    source.k += of_k.at(batch, 0, key_head);
    source.v += of_v.at(batch, 0, key_head);
#endif
    return source;
}

// A lane's numbers of `count` queries from `row` on, into zeros: the right factors of the scores.
__device__ void load_queries(Piece (&own)[K_PIECES], const number* q, int row, int count) {
    int lane = threadIdx.x % 32;
    if (lane / 4 < count)
#pragma unroll
        for (int i = 0; i < K_PIECES; ++i)
            own[i].all =
                *(const uint4*)(q + (size_t)(row + lane / 4) * DIM + (i * 4 + lane % 4) * 8);
}

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
