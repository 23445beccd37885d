// What the Hopper rungs share. A block has 128 queries of a head, 64 for each of two warp groups,
// and walks through the keys from the last tile that they see to the first.
#pragma once
#include "hopper_products.cuh"
#include "../../matmul/kernels/hopper_rounds.cuh"
#include "softmax.cuh"

#ifndef DIM
#define DIM 128  // numbers of a head: 64 or 128
#endif
#ifndef KEYS
#define KEYS 128  // keys of a tile: 64, 128, 144, 160 or 176
#endif
#ifndef STAGES
#define STAGES 4  // tiles of K and of V in shared memory
#endif
#ifndef BUFFERS
#define BUFFERS 1  // tiles of queries there
#endif

constexpr int ROWS = 64;  // queries of a warp group
constexpr int CONSUMERS = 2;
constexpr int QUERIES = CONSUMERS * ROWS;
constexpr int BOX = 64;  // numbers of a row in a box: 128 bytes, the most that a swizzle can hold
constexpr int BOXES = DIM / BOX;

struct Maps {
    const TensorMap *q, *k, *v, *out;
};

struct Tile {
    int batch, head, row;  // row: of its first query
    int sequence;  // which of the sequences that are packed
};

struct QueryTile {
    bf16 box[BOXES][ROWS][BOX];
};
struct KeyTile {  // or of values
    bf16 box[BOXES][KEYS][BOX];
};
struct Shared {
    QueryTile q[BUFFERS][CONSUMERS];  // later the results
    KeyTile ring[STAGES];
    barrier q_full[BUFFERS][CONSUMERS], q_empty[BUFFERS][CONSUMERS];
    barrier full[STAGES], empty[STAGES];
};
using Slot = SlotOf<STAGES>;

// Tiles of keys that any of the block's queries sees.
__device__ int key_tiles(const Problem& p, int row) {
    int last = min(row + QUERIES, p.queries) - 1;
    return max(1, (seen(p, last) + KEYS - 1) / KEYS);  // 1: where nobody sees any, too
}

__device__ void init_barriers(Shared& s) {
    for (int buffer = 0; buffer < BUFFERS; ++buffer)
        for (int i = 0; i < CONSUMERS; ++i) {
            barrier_init(&s.q_full[buffer][i], 1);
            barrier_init(&s.q_empty[buffer][i], 1);
        }
    for (int i = 0; i < STAGES; ++i) {
        barrier_init(&s.full[i], 1);
        barrier_init(&s.empty[i], CONSUMERS);
    }
    barriers_ready();
}

// ---- the producer's two threads

// round: how many tiles of queries this block has had before.
__device__ void ask_for_queries(Shared& s, const Maps& maps, Tile tile, int round) {
    int buffer = round % BUFFERS;
    int parity = round / BUFFERS % 2;
    for (int i = 0; i < CONSUMERS; ++i) {
        barrier* full = &s.q_full[buffer][i];
        barrier_wait(&s.q_empty[buffer][i], parity ^ 1);
        barrier_expect(full, sizeof(QueryTile));
        for (int x = 0; x < BOXES; ++x)
            load_rows(s.q[buffer][i].box[x], maps.q, full, x * BOX, tile.head, tile.row + i * ROWS,
                      tile.batch);
    }
}

__device__ void ask_for(Shared& s, const TensorMap* map, Slot& slot, int head, int row, int batch) {
    barrier_wait(&s.empty[slot.i], slot.parity ^ 1);
    barrier_expect(&s.full[slot.i], sizeof(KeyTile));
    for (int x = 0; x < BOXES; ++x)
        load_rows(s.ring[slot.i].box[x], map, &s.full[slot.i], x * BOX, head, row, batch);
    slot.next();
}

// All tiles of keys and values, in the order in which the consumers multiply: K and V of a tile,
// or with AHEAD = 1 the next tile's K before V.
template <int AHEAD>
__device__ void ask_for_keys(Shared& s, const Maps& maps, const Problem& p, Tile tile, Slot& slot) {
    int tiles = key_tiles(p, tile.row);
    int head = tile.head / p.group;
    for (int i = 0; i < tiles + AHEAD; ++i) {
        int row = (tiles - 1 - i) * KEYS;
        if (i < tiles)
            ask_for(s, maps.k, slot, head, row, tile.batch);
        if (i >= AHEAD)
            ask_for(s, maps.v, slot, head, row + AHEAD * KEYS, tile.batch);
    }
}

// ---- the consumers

__device__ void give_back(Shared& s, Slot& slot) {
    if (threadIdx.x % 128 == 0)
        barrier_arrive(&s.empty[slot.i]);
    slot.next();
}

// Queues scores = q kᵀ.
__device__ void queue_scores(float (&scores)[KEYS / 2], const QueryTile& q, const KeyTile& k) {
    descriptor a = tile_for_wgmma(&q, 0);
    descriptor b = tile_for_wgmma(&k, 0);
    wgmma_begin();
#pragma unroll
    for (int x = 0; x < DIM; x += 16) {
        int piece = x % BOX * sizeof(bf16);
        multiply(scores, a + (x / BOX * sizeof q.box[0] + piece) / 16,
                 b + (x / BOX * sizeof k.box[0] + piece) / 16, x > 0);
    }
    wgmma_close_group();
}

// Queues out += weights v.
__device__ void queue_values(float (&out)[DIM / 2], const unsigned (&weights)[KEYS / 4],
                             const KeyTile& v) {
    descriptor b = tile_for_wgmma(&v, sizeof v.box[0]);
    wgmma_begin();
#pragma unroll
    for (int key = 0; key < KEYS; key += 16)
        multiply(out, &weights[key / 4], b + key * sizeof v.box[0][0] / 16);
    wgmma_close_group();
}

// Hides the keys that a row does not see. first: the tile's first key.
__device__ void hide(float (&scores)[KEYS / 2], const Problem& p, int row, int first) {
    int column = first + threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        int end = seen(p, row + half * 8) - column;
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 4)
#pragma unroll
            for (int j = 0; j < 2; ++j)
                if (i * 2 + j >= end)
                    scores[i + half * 2 + j] = -INFINITY;
    }
}

// The results of 64 queries leave through shared memory, where the queries were.
__device__ void store(Shared& s, const Maps& maps, const Problem& p, float* lse, Tile tile,
                      float (&out)[DIM / 2], Rows& rows, int warpgroup, int buffer = 0) {
    int thread = threadIdx.x % 128;
    int row = tile.row + warpgroup * ROWS;
    QueryTile& staged = s.q[buffer][warpgroup];
    rows.finish(out);
    lse += ((size_t)tile.batch * p.heads + tile.head) * p.lse_rows + p.lse_first;
    rows.store_lse(lse, p.scale, row + thread / 32 * 16 + thread % 32 / 4, p.queries);
    int matrix = thread % 32 / 8;  // of the four 8 x 8 matrices that a warp stores at a time
    int y = thread / 32 * 16 + matrix % 2 * 8 + thread % 8;
    meet_warpgroup(warpgroup + 1);  // nobody multiplies these queries any more
#pragma unroll
    for (int j = 0; j < DIM / 8; j += 2) {  // groups of 8 columns, two at a time
        unsigned r[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            r[i] = packed(out[j * 4 + i * 2], out[j * 4 + i * 2 + 1]);
        int piece = (j % 8 + matrix / 2) ^ (y % 8);  // swizzled, as the map says
        store_matrices(&staged.box[j / 8][y][piece * 8], r);
    }
    show_to_copy_engine();
    meet_warpgroup(warpgroup + 1);
    if (thread == 0) {
        for (int x = 0; x < BOXES; ++x)
            store_rows(maps.out, staged.box[x], x * BOX, tile.head, row, tile.batch);
        close_stores();
        stores_have_read();
        barrier_arrive(&s.q_empty[buffer][warpgroup]);
    }
}
