// What the Hopper rung of the backward pass is made of. A block has 128 keys, 64 for each of two warp
// groups, whose dk and dv never leave their registers; it walks through the queries that see them,
// in all heads of their group. All scores stand turned, a key for each row: so weights and their
// changes are the left factors of dv and dk as they lie in registers. Only changes go through shared
// memory, once, where both warp groups multiply them with K: each has half of dq's numbers, and adds
// them to a float32 sum in global memory.
// Source of the algorithm: Shah et al., FlashAttention-3 (2024).
// Before it and behind it run the kernels of backward_ends.cu.
#pragma once
#include "backward.cuh"
#include "backward_products.cuh"
#include "../../matmul/kernels/hopper_rounds.cuh"
#include "softmax.cuh"

#ifndef DIM
#define DIM 128  // numbers of a head: 64 or 128
#endif
#ifndef QUERIES
#define QUERIES 64  // of a tile
#endif
#ifndef STAGES
#define STAGES 2  // tiles of Q and of dout in shared memory
#endif

constexpr int KEYS = 128, ROWS = 64;  // of a block, of a warp group
constexpr int CONSUMERS = 2;
constexpr int BOX = 64;  // numbers of a row in a box: 128 bytes, the most that a swizzle can hold
constexpr int BOXES = DIM / BOX;
// dq turned, DIM x QUERIES: a warp group has 64 dims of all queries, or all 64 of half the queries
constexpr int DQ_QUERIES = DIM == 128 ? QUERIES : QUERIES / 2;
constexpr int DQ_PART = ROWS * DQ_QUERIES;  // numbers of a warp group

struct QueryTile {  // or of dout
    bf16 box[BOXES][QUERIES][BOX];
};
struct KeyTile {  // or of values
    bf16 box[BOXES][KEYS][BOX];
};
struct ChangeTile {  // a row for each query
    bf16 box[CONSUMERS][QUERIES][BOX];
};
struct Shared {
    KeyTile k, v;  // later their gradients
    QueryTile q[STAGES], dout[STAGES];
    ChangeTile changes[STAGES];
    float lse[STAGES][QUERIES], delta[STAGES][QUERIES];
    barrier keys_full;
    barrier q_full[STAGES], q_empty[STAGES], dout_full[STAGES], dout_empty[STAGES];
};
using Slot = SlotOf<STAGES>;

struct Maps {
    const TensorMap *q, *k, *v, *dout, *dk, *dv;
};

// Where tiles of queries are in what the kernels hand to each other.
// rows: [tiles][2][QUERIES], lse in powers of 2 and delta; sums: [tiles][QUERIES * DIM], dq's.
struct Between {
    float *rows, *sums;

    __device__ float* rows_of(size_t tile) const {
        return rows + tile * 2 * QUERIES;
    }
    __device__ float* sums_of(size_t tile) const {
        return sums + tile * QUERIES * DIM;
    }
};

// A tile of keys.
struct Tile {
    int batch, head, key;  // head: of keys; key: its first
};

// The steps of a tile of keys: a tile of queries each.
struct Steps {
    int batch, head, tile;  // of this step
    int first, tiles, end_head;

    __device__ Steps(const Problem& p, Tile keys)
        : batch(keys.batch),
          head(keys.head * p.group),
          first(first_to_see(p, keys.key) / QUERIES),
          tiles((p.queries + QUERIES - 1) / QUERIES),
          end_head(head + p.group) {
        tile = first;
    }
    __device__ bool done() const {
        return head == end_head;
    }
    __device__ void next() {
        if (++tile == tiles) {
            tile = first;
            ++head;
        }
    }
    __device__ size_t place(const Problem& p) const {
        return ((size_t)batch * p.heads + head) * tiles + tile;
    }
};

__device__ void init_barriers(Shared& s) {
    barrier_init(&s.keys_full, 1);
    for (int i = 0; i < STAGES; ++i) {
        barrier_init(&s.q_full[i], 1);
        barrier_init(&s.q_empty[i], CONSUMERS);
        barrier_init(&s.dout_full[i], 1);
        barrier_init(&s.dout_empty[i], CONSUMERS);
    }
    barriers_ready();
}

// ---- the producer

__device__ void ask_for_tile(QueryTile& to, float (&numbers)[QUERIES], const TensorMap* map,
                             const float* rows, barrier* full, const Steps& step) {
    barrier_expect(full, sizeof to + sizeof numbers);
    for (int x = 0; x < BOXES; ++x)
        load_rows(to.box[x], map, full, x * BOX, step.head, step.tile * QUERIES, step.batch);
    load_bytes(numbers, rows, sizeof numbers, full);
}

__device__ void ask_for_keys(Shared& s, const Maps& maps, Tile keys) {
    barrier_expect(&s.keys_full, 2 * sizeof(KeyTile));
    for (int x = 0; x < BOXES; ++x) {
        load_rows(s.k.box[x], maps.k, &s.keys_full, x * BOX, keys.head, keys.key, keys.batch);
        load_rows(s.v.box[x], maps.v, &s.keys_full, x * BOX, keys.head, keys.key, keys.batch);
    }
}

__device__ void ask_for_queries(Shared& s, const Maps& maps, const Problem& p,
                                const Between& between, Tile keys) {
    Slot slot;
    for (Steps step(p, keys); !step.done(); step.next()) {
        int i = slot.i;
        const float* rows = between.rows_of(step.place(p));
        barrier_wait(&s.q_empty[i], slot.parity ^ 1);
        ask_for_tile(s.q[i], s.lse[i], maps.q, rows, &s.q_full[i], step);
        barrier_wait(&s.dout_empty[i], slot.parity ^ 1);
        ask_for_tile(s.dout[i], s.delta[i], maps.dout, rows + QUERIES, &s.dout_full[i], step);
        slot.next();
    }
}

// ---- the consumers

// Queues d = a bᵀ: 64 rows of K or V, and a tile of queries.
__device__ void queue_scores(float (&d)[QUERIES / 2], const KeyTile& rows, int first,
                             const QueryTile& queries) {
    descriptor a = tile_for_wgmma(rows.box[0][first], 0);
    descriptor b = tile_for_wgmma(&queries, 0);
    wgmma_begin();
#pragma unroll
    for (int x = 0; x < DIM; x += 16) {
        int piece = x % BOX * sizeof(bf16);
        multiply(d, a + (x / BOX * sizeof rows.box[0] + piece) / 16,
                 b + (x / BOX * sizeof queries.box[0] + piece) / 16, x > 0);
    }
    wgmma_close_group();
}

// Queues d += a b: weights or changes, and dout or q.
__device__ void queue_gradient(float (&d)[DIM / 2], const unsigned (&a)[QUERIES / 4],
                               const QueryTile& queries) {
    descriptor b = tile_for_wgmma(&queries, sizeof queries.box[0]);
    wgmma_begin();
#pragma unroll
    for (int row = 0; row < QUERIES; row += 16)
        multiply(d, &a[row / 4], b + row * sizeof queries.box[0][0] / 16);
    wgmma_close_group();
}

// Queues this warp group's part of dq, turned: kᵀ changesᵀ.
__device__ void queue_dq(float (&d)[DQ_QUERIES / 2], const KeyTile& k, const ChangeTile& changes,
                         int warpgroup) {
    descriptor a = tile_for_wgmma(k.box[DIM == 128 ? warpgroup : 0], 0);
    descriptor b = tile_for_wgmma(changes.box[0][DIM == 128 ? 0 : warpgroup * DQ_QUERIES], 0);
    wgmma_begin();
#pragma unroll
    for (int key = 0; key < KEYS; key += 16) {
        int piece = key % BOX * sizeof(bf16);
        multiply_turned(d, a + key * sizeof k.box[0][0] / 16,
                        b + (key / BOX * sizeof changes.box[0] + piece) / 16, key > 0);
    }
    wgmma_close_group();
}

// Hides queries that do not see a row's key. start: the first that does, relative to the tile.
__device__ void hide(float (&scores)[QUERIES / 2], const int (&start)[2]) {
    int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < QUERIES / 2; i += 4)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (i * 2 + j % 2 < start[j / 2] - column)
                scores[i + j] = -INFINITY;
}

// Scores to weights.
__device__ void weigh(float (&scores)[QUERIES / 2], const float* lse, float scale) {
#pragma unroll
    for (int i = 0; i < QUERIES / 2; i += 4) {
        float2 own = *(const float2*)&lse[i * 2 + threadIdx.x % 4 * 2];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            scores[i + j] = power_of_two(scores[i + j] * scale - (j % 2 ? own.y : own.x));
    }
}

// dp to changes of scores.
__device__ void change(float (&dp)[QUERIES / 2], const float (&weights)[QUERIES / 2],
                       const float* delta) {
#pragma unroll
    for (int i = 0; i < QUERIES / 2; i += 4) {
        float2 own = *(const float2*)&delta[i * 2 + threadIdx.x % 4 * 2];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            dp[i + j] = weights[i + j] * (dp[i + j] - (j % 2 ? own.y : own.x));
    }
}

// A warp group's changes, turned on their way to shared memory.
__device__ void store_changes(ChangeTile& to, const unsigned (&changes)[QUERIES / 4],
                              int warpgroup) {
    int matrix = threadIdx.x % 32 / 8;  // of the four 8 x 8 matrices that a warp stores at a time
    int row = matrix / 2 * 8 + threadIdx.x % 8;
    int piece = (threadIdx.x % 128 / 32 * 2 + matrix % 2) ^ row % 8;  // swizzled
    bf16* place = &to.box[warpgroup][row][piece * 8];
#pragma unroll
    for (int query = 0; query < QUERIES; query += 16)
        store_matrices_transposed(place + query * BOX, &changes[query / 4]);
    show_to_copy_engine();
}

__device__ void meet_consumers() {
    asm volatile("bar.sync 3, 256;" ::: "memory");
}

// Adds a warp group's part of dq to the sums, which lie as threads hold them.
__device__ void add_dq(const float (&dq)[DQ_QUERIES / 2], float* sums, int warpgroup) {
    sums += warpgroup * DQ_PART + threadIdx.x % 128 * 4;
#pragma unroll
    for (int i = 0; i < DQ_QUERIES / 2; i += 4)
        add_to_memory(sums + i * 128, &dq[i]);
}

// The gradients of a warp group's 64 keys or values go to their rows in shared memory.
__device__ void stage(KeyTile& staged, const float (&d)[DIM / 2], float scale, int warpgroup) {
    int thread = threadIdx.x % 128;
    int matrix = thread % 32 / 8;
    int y = thread / 32 * 16 + matrix % 2 * 8 + thread % 8;
#pragma unroll
    for (int j = 0; j < DIM / 8; j += 2) {  // groups of 8 columns, two at a time
        unsigned r[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            r[i] = packed(d[j * 4 + i * 2] * scale, d[j * 4 + i * 2 + 1] * scale);
        int piece = (j % 8 + matrix / 2) ^ (y % 8);  // swizzled, as the map says
        store_matrices(&staged.box[j / 8][warpgroup * ROWS + y][piece * 8], r);
    }
    show_to_copy_engine();
}

// And from there to global memory. One thread calls it.
__device__ void store(const TensorMap* map, const KeyTile& staged, Tile keys, int warpgroup) {
    int row = warpgroup * ROWS;
    for (int x = 0; x < BOXES; ++x)
        store_rows(map, staged.box[x][row], x * BOX, keys.head, keys.key + row, keys.batch);
    close_stores();
}
