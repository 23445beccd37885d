// nvcc -arch=sm_90a -cubin backward_hopper.cu
// The backward pass on Hopper, its five products by wgmma, its copies by TMA. A block has 128 keys,
// 64 for each of two warp groups, whose dk and dv never leave their registers; it walks through the
// queries that see them, in all heads of their group. All scores stand turned, a key for each row:
// so weights and their changes are the left factors of dv and dk as they lie in registers. Only
// changes go through shared memory, once, where both warp groups multiply them with K: each has half
// of dq's numbers, and adds them to a float32 sum in global memory.
// Source of the algorithm: Shah et al., FlashAttention-3 (2024).
// prepare, attention, finish follow each other; Grid of prepare and finish: (tiles of queries,
// heads, batch), 256 threads. Of attention: as many blocks as tiles has entries, 384 threads,
// dynamic shared memory: Shared. tiles: (batch, head of keys, first key, -).
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
#define STAGES 2  // tiles of Q in shared memory
#endif
#ifndef DOUT_STAGES
#define DOUT_STAGES 2
#endif
#ifndef BULK
#define BULK 0  // 1: the copy engine adds dq, 0: threads do
#endif
#ifndef ROTATE
#define ROTATE 1  // 1: blocks begin at different queries
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
    KeyTile k, v;
    QueryTile q[STAGES], dout[DOUT_STAGES];
    ChangeTile changes[2];
#if BULK
    float dq[CONSUMERS][DQ_PART];
#endif
    float lse[STAGES][QUERIES], delta[DOUT_STAGES][QUERIES];
    barrier keys_full;
    barrier q_full[STAGES], q_empty[STAGES], dout_full[DOUT_STAGES], dout_empty[DOUT_STAGES];
};

struct Maps {
    const TensorMap *q, *k, *v, *dout, *dk, *dv;
};

// Where tiles of queries are in what the kernels hand to each other.
// rows: [tiles][2][QUERIES], lse in powers of 2 and delta; sums: [tiles][QUERIES * DIM], dq's.
struct Between {
    float *rows, *sums;
    int tiles;  // of a head

    __device__ float* rows_of(size_t tile) const {
        return rows + tile * 2 * QUERIES;
    }
    __device__ float* sums_of(size_t tile) const {
        return sums + tile * QUERIES * DIM;
    }
};

// The steps of a block: a tile of queries each.
struct Steps {
    int batch, head, tile;  // of this step
    int first, tiles, left;
    int end_head;
    const Problem& p;

    __device__ Steps(const Problem& problem, int4 work, int all_tiles) : p(problem) {
        batch = work.x;
        head = work.y * p.group;
        end_head = head + p.group;
        first = first_to_see(p, work.z) / QUERIES;
        tiles = all_tiles;
        left = tiles - first;
        tile = ROTATE ? first + work.z / KEYS % left : first;
    }
    __device__ bool done() const {
        return head == end_head;
    }
    __device__ void next() {
        if (++tile == tiles)
            tile = first;
        if (--left == 0) {
            left = tiles - first;
            ++head;
        }
    }
    __device__ size_t place() const {
        return ((size_t)batch * p.heads + head) * tiles + tile;
    }
};

using QuerySlot = SlotOf<STAGES>;
using DoutSlot = SlotOf<DOUT_STAGES>;

__device__ void init_barriers(Shared& s) {
    barrier_init(&s.keys_full, 1);
    for (int i = 0; i < STAGES; ++i) {
        barrier_init(&s.q_full[i], 1);
        barrier_init(&s.q_empty[i], CONSUMERS);
    }
    for (int i = 0; i < DOUT_STAGES; ++i) {
        barrier_init(&s.dout_full[i], 1);
        barrier_init(&s.dout_empty[i], CONSUMERS);
    }
    barriers_ready();
}

// ---- the producer

__device__ void load_tile(QueryTile& to, const TensorMap* map, barrier* full, const Steps& step) {
    for (int x = 0; x < BOXES; ++x)
        load_rows(to.box[x], map, full, x * BOX, step.head, step.tile * QUERIES, step.batch);
}

__device__ void produce(Shared& s, const Maps& maps, const Between& between, Steps step,
                        int4 work) {
    barrier_expect(&s.keys_full, 2 * sizeof(KeyTile));
    for (int x = 0; x < BOXES; ++x) {
        load_rows(s.k.box[x], maps.k, &s.keys_full, x * BOX, work.y, work.z, work.x);
        load_rows(s.v.box[x], maps.v, &s.keys_full, x * BOX, work.y, work.z, work.x);
    }
    QuerySlot q;
    DoutSlot dout;
    const int ROW_BYTES = sizeof s.lse[0];
    for (; !step.done(); step.next()) {
        const float* rows = between.rows_of(step.place());
        barrier_wait(&s.q_empty[q.i], q.parity ^ 1);
        barrier_expect(&s.q_full[q.i], sizeof(QueryTile) + ROW_BYTES);
        load_tile(s.q[q.i], maps.q, &s.q_full[q.i], step);
        load_bytes(s.lse[q.i], rows, ROW_BYTES, &s.q_full[q.i]);
        q.next();
        barrier_wait(&s.dout_empty[dout.i], dout.parity ^ 1);
        barrier_expect(&s.dout_full[dout.i], sizeof(QueryTile) + ROW_BYTES);
        load_tile(s.dout[dout.i], maps.dout, &s.dout_full[dout.i], step);
        load_bytes(s.delta[dout.i], rows + QUERIES, ROW_BYTES, &s.dout_full[dout.i]);
        dout.next();
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

__device__ void add_dq(Shared& s, const float (&dq)[DQ_QUERIES / 2], float* sums, int warpgroup) {
    int thread = threadIdx.x % 128;
    sums += warpgroup * DQ_PART;
#if BULK
    float* staged = s.dq[warpgroup];
    if (thread == 0)
        stores_have_read();
    meet_warpgroup(warpgroup + 1);
#pragma unroll
    for (int i = 0; i < DQ_QUERIES / 2; i += 4)
        *(float4*)&staged[i * 128 + thread * 4] = {dq[i], dq[i + 1], dq[i + 2], dq[i + 3]};
    show_to_copy_engine();
    meet_warpgroup(warpgroup + 1);
    if (thread == 0) {
        add_bytes(sums, staged, sizeof s.dq[0]);
        close_stores();
    }
#else
#pragma unroll
    for (int i = 0; i < DQ_QUERIES / 2; i += 4)
        add_to_memory(sums + i * 128 + thread * 4, &dq[i]);
#endif
}

// The gradients of 64 keys or values leave through shared memory, where the keys or values were.
__device__ void store(KeyTile& staged, const TensorMap* map, const float (&d)[DIM / 2], float scale,
                      int4 work, int warpgroup) {
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
    meet_warpgroup(warpgroup + 1);
    if (thread == 0) {
        for (int x = 0; x < BOXES; ++x)
            store_rows(map, staged.box[x][warpgroup * ROWS], x * BOX, work.y,
                       work.z + warpgroup * ROWS, work.x);
        close_stores();
    }
}

__device__ void consume(Shared& s, const Maps& maps, const Problem& p, const Between& between,
                        Steps step, int4 work, int warpgroup) {
    float dk[DIM / 2] = {}, dv[DIM / 2] = {};
    int elected = threadIdx.x % 128 == 0;
    int own_key = work.z + warpgroup * ROWS + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    int starts[2] = {first_to_see(p, own_key), first_to_see(p, own_key + 8)};
    // the first query for which nothing of this warp group's is to be hidden
    int whole = first_to_see(p, work.z + warpgroup * ROWS + ROWS - 1);
    QuerySlot q;
    DoutSlot dout;
    int parity = 0;  // which tile of changes
    settle(dk);
    settle(dv);
    barrier_wait(&s.keys_full, 0);
    for (; !step.done(); step.next()) {
        float scores[QUERIES / 2], dp[QUERIES / 2], dq[DQ_QUERIES / 2];
        unsigned weights[QUERIES / 4], changes[QUERIES / 4];
        barrier_wait(&s.q_full[q.i], q.parity);
        queue_scores(scores, s.k, warpgroup * ROWS, s.q[q.i]);
        barrier_wait(&s.dout_full[dout.i], dout.parity);
        queue_scores(dp, s.v, warpgroup * ROWS, s.dout[dout.i]);
        wait_for_products<1>(scores);
        int row = step.tile * QUERIES;
        if (row < whole) {
            int start[2] = {starts[0] - row, starts[1] - row};
            hide(scores, start);
        }
        weigh(scores, s.lse[q.i], p.scale);
        pack(weights, scores);
        wait_for_products<0>(dp);
        change(dp, scores, s.delta[dout.i]);
        queue_gradient(dv, weights, s.dout[dout.i]);
        pack(changes, dp);
        store_changes(s.changes[parity], changes, warpgroup);
        meet_consumers();
        queue_dq(dq, s.k, s.changes[parity], warpgroup);
        queue_gradient(dk, changes, s.q[q.i]);
        wait_for_products<1>(dq);
        if (elected)
            barrier_arrive(&s.dout_empty[dout.i]);
        add_dq(s, dq, between.sums_of(step.place()), warpgroup);
        wait_for_products<0>(dk);
        if (elected)
            barrier_arrive(&s.q_empty[q.i]);
        q.next();
        dout.next();
        parity ^= 1;
    }
    wait_for_products<0>(dk);
    wait_for_products<0>(dv);
    meet_consumers();  // nobody multiplies with these keys any more
    store(s.v, maps.dv, dv, 1, work, warpgroup);
    store(s.k, maps.dk, dk, p.scale * LN_2, work, warpgroup);
    if (elected)
        stores_have_arrived();
}

__global__ __launch_bounds__(384, 1) void attention(
    const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
    const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap dout,
    const __grid_constant__ TensorMap dk, const __grid_constant__ TensorMap dv, const int4* tiles,
    float* rows, float* sums, Problem p) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    Maps maps = {&q, &k, &v, &dout, &dk, &dv};
    Between between = {rows, sums, (p.queries + QUERIES - 1) / QUERIES};
    int4 work = tiles[blockIdx.x];
    Steps step(p, work, between.tiles);
    int warpgroup = own_warpgroup() - 1;  // -1: the producer
    if (threadIdx.x == 0)
        init_barriers(s);
    __syncthreads();
    if (warpgroup < 0) {
        keep_registers<24>();
        if (threadIdx.x == 0)
            produce(s, maps, between, step, work);
    } else {
        take_registers<240>();
        consume(s, maps, p, between, step, work, warpgroup);
    }
}

// ---- before and behind it

// lse in powers of 2, infinite where a query sees no key or is none: its weights are 0. delta.
// dq's sums are set to 0.
__global__ void prepare(float* rows, float* sums, const bf16* out, const bf16* dout,
                        const float* lse, Problem p, Strides of_out, Strides of_dout) {
    const int LANES = DIM / 8;  // that have a row, 16 bytes each
    int head = blockIdx.y;
    int batch = blockIdx.z;
    size_t tile = ((size_t)batch * p.heads + head) * gridDim.x + blockIdx.x;
    Between between = {rows, sums, (int)gridDim.x};
    float* own = between.rows_of(tile);
    int x = threadIdx.x % LANES * 8;
    for (int y = threadIdx.x / LANES; y < QUERIES; y += blockDim.x / LANES) {
        int row = blockIdx.x * QUERIES + y;
        float delta = 0;
        if (row < p.queries) {
            uint4 a = *(const uint4*)(out + of_out.at(batch, row, head) + x);
            uint4 b = *(const uint4*)(dout + of_dout.at(batch, row, head) + x);
            const __nv_bfloat162* left = (const __nv_bfloat162*)&a;
            const __nv_bfloat162* right = (const __nv_bfloat162*)&b;
            for (int i = 0; i < 4; ++i) {
                float2 l = __bfloat1622float2(left[i]), r = __bfloat1622float2(right[i]);
                delta += l.x * r.x + l.y * r.y;
            }
        }
        for (int lane = LANES / 2; lane > 0; lane /= 2)
            delta += __shfl_xor_sync(~0u, delta, lane);
        if (x == 0) {
            float own_lse = row < p.queries ? lse[place_of(p, batch, head, row)] : -INFINITY;
            own[y] = own_lse > -INFINITY ? own_lse * LOG2_E : INFINITY;
            own[QUERIES + y] = delta;
        }
    }
    float4* zeros = (float4*)between.sums_of(tile);
    for (int i = threadIdx.x; i < QUERIES * DIM / 4; i += blockDim.x)
        zeros[i] = {0, 0, 0, 0};
}

// dq of a tile of queries: its sums lie as the threads of attention hold them.
__global__ __launch_bounds__(256) void finish(bf16* dq, const float* sums, Problem p,
                                              Strides of_dq) {
    const int PITCH = DIM + 8;
    __shared__ __align__(16) bf16 staged[QUERIES * PITCH];
    int head = blockIdx.y;
    int batch = blockIdx.z;
    size_t tile = ((size_t)batch * p.heads + head) * gridDim.x + blockIdx.x;
    int warpgroup = threadIdx.x / 128;
    int thread = threadIdx.x % 128;
    const float4* own = (const float4*)(sums + tile * QUERIES * DIM + warpgroup * DQ_PART);
    int x = (DIM == 128 ? warpgroup * ROWS : 0) + thread / 32 * 16 + thread % 32 / 4;
    int y = (DIM == 128 ? 0 : warpgroup * DQ_QUERIES) + thread % 4 * 2;
    float scale = p.scale * LN_2;
#pragma unroll
    for (int i = 0; i < DQ_QUERIES / 8; ++i) {
        float4 four = own[i * 128 + thread];
        bf16* to = staged + (y + i * 8) * PITCH + x;
        to[0] = __float2bfloat16(four.x * scale);
        to[PITCH] = __float2bfloat16(four.y * scale);
        to[8] = __float2bfloat16(four.z * scale);
        to[PITCH + 8] = __float2bfloat16(four.w * scale);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < QUERIES * DIM / 8; i += 256) {
        int row = blockIdx.x * QUERIES + i / (DIM / 8);
        int column = i % (DIM / 8) * 8;
        if (row < p.queries)
            *(uint4*)(dq + of_dq.at(batch, row, head) + column) =
                *(const uint4*)&staged[i / (DIM / 8) * PITCH + column];
    }
}
