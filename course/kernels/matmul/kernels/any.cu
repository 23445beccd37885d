// C = A B at any size, on Hopper: hopper.cu for any numbers, any tile, and a batch of matrices.
// Blocks stay and take tile after tile. Tiles that would leave most blocks idle at the end are cut
// along k: who has a tile's first step adds what others have summed up of it, in their order, so
// the result is the same in every run. All blocks must run at the same time.
// BM x BN: a block's tile. CONSUMERS: warp groups that share its rows, or with TURNS have tiles of
// their own: while one stores, the other multiplies. CLUSTER 2: two blocks share what both need of B. PER_SM: blocks that an SM should have room for. HIGH: tiles that run together
// lie in patches so many rows high.
// Grid: CLUSTER * clusters, block: 128 * (1 + CONSUMERS), dynamic shared memory: sizeof(Shared).
#include "any_parts.cuh"
#include "any_type.cuh"
#include "hopper_rounds.cuh"

#ifndef BM
#define BM 128
#define BN 256
#define CONSUMERS 2
#define STAGES 4
#define CLUSTER 2
#define PER_SM 1
#endif
#ifndef HIGH
#define HIGH 8
#endif
#ifndef TURNS
#define TURNS 0
#endif
static_assert(!TURNS || CONSUMERS == 2, "turns are of two");

constexpr int ROWS = TURNS ? BM : BM / CONSUMERS;  // of a consumer
constexpr int READERS = TURNS ? 1 : CONSUMERS;  // of a stage, in a block
constexpr int HALVES = ROWS / 64;
constexpr int SUMS = BN / 2;  // of a thread in 64 rows
constexpr int BOXES = BN == 192 || BN == 64 ? 1 : 2;  // that leave together
constexpr int THREADS = 128 * (1 + CONSUMERS);
constexpr int EACH = 65536 / (THREADS * PER_SM) / 8 * 8;  // registers of a thread at the start
constexpr int KEPT = 40;
constexpr int TAKEN = (EACH * (1 + CONSUMERS) - KEPT) / CONSUMERS / 8 * 8;
constexpr bool TRADED = EACH < 200;  // else all have enough

using Stage = StageOf<BM, BN>;
struct Shared {
    Stage stage[STAGES];
    result c[CONSUMERS][BOXES][64][BOX];  // on their way to C
    barrier full[STAGES], empty[STAGES];
    float scales[CONSUMERS][KIND == FP8 ? BN : 4];  // of a tile's columns
    barrier turn[2];  // a consumer may look at the ring: the other's part has all come
};
using Slot = SlotOf<STAGES>;

// The launch, as every role sees it.
struct Problem {
    int m, n, k, batch, whole, cuts;
    TilesOf<BM, BN, CLUSTER, HIGH> tiles;

    __device__ Problem(int m, int n, int k, int batch, int whole, int cuts)
        : m(m), n(n), k(k), batch(batch), whole(whole), cuts(cuts), tiles(m, n) {}
    __device__ CutParts parts() const {
        int steps = (k + BK - 1) / BK;
        return CutParts(tiles.count() * batch, whole, cuts, steps, gridDim.x / CLUSTER,
                        blockIdx.x / CLUSTER);
    }
    __device__ Place place(int tile) const {
        int matrix = tile / tiles.count();
        int in_matrix = tile - matrix * tiles.count();
        return {tiles.row(in_matrix), tiles.column(in_matrix), matrix};
    }
};

// Where blocks leave sums for others: [block][reader][sum][thread], and a flag for each, zero before
// and after a launch.
struct Exchange {
    float* sums;
    int* ready;
};

template <int REGISTERS>
__device__ void keep_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS>
__device__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// ---- the producer

__device__ void produce(Shared& s, const TensorMap* a, const TensorMap* b, const Problem& problem) {
    CutParts parts = problem.parts();
    Slot slot;
    Part part;
    while (parts.next(part)) {
        Place at = problem.place(part.tile);
        for (int step = part.first; step < part.last; ++step) {
            barrier_wait(&s.empty[slot.i], slot.parity ^ 1);  // free, in all blocks
            load<CLUSTER>(s.stage[slot.i], a, b, &s.full[slot.i], at, step * BK);
            slot.next();
        }
    }
}

// ---- the consumers

// Tells the producers of all blocks that copy into this stage: it may be overwritten.
__device__ void give_back(Shared& s, int slot) {
    int thread = threadIdx.x % 128;
    if (CLUSTER == 1) {
        if (thread == 0)
            barrier_arrive(&s.empty[slot]);
    } else if (thread < CLUSTER) {
        barrier_arrive_at(&s.empty[slot], thread);
    }
}

__device__ void add_steps(float (&d)[HALVES][SUMS], Shared& s, Slot& slot, int consumer,
                          int steps) {
    int before = -1;
    for (int step = 0; step < steps; ++step) {
        barrier_wait(&s.full[slot.i], slot.parity);
        multiply(d, s.stage[slot.i], TURNS ? 0 : consumer * ROWS, step > 0);
        wgmma_wait<1>();
        if (before >= 0)
            give_back(s, before);
        before = slot.i;
        slot.next();
    }
    if (TURNS && threadIdx.x % 128 == 0)
        barrier_arrive(&s.turn[1 - consumer]);
    wgmma_wait<0>();
    give_back(s, before);
}

// Waits for this consumer's turn, its count-th: nobody may wait for a stage that is more than a
// round of the ring away, because a barrier tells rounds apart by their parity only.
__device__ void wait_for_turn(Shared& s, int consumer, int count) {
    if (consumer == 1 || count > 0)
        barrier_wait(&s.turn[consumer], (count - (consumer == 0)) % 2);
}

__device__ float* place_of(Exchange exchange, int block, int place) {
    size_t each = HALVES * SUMS * 128;
    return exchange.sums + ((size_t)block * READERS + place) * each + threadIdx.x % 128;
}

// Leaves this consumer's sums for another block. The fence comes before the flag: who sees the flag
// sees the sums too.
__device__ void hand_over(const float (&d)[HALVES][SUMS], Exchange exchange, int consumer) {
    int place = TURNS ? 0 : consumer;
    float* to = place_of(exchange, blockIdx.x, place);
#pragma unroll
    for (int i = 0; i < HALVES * SUMS; ++i)
        __stcg(to + i * 128, d[i / SUMS][i % SUMS]);
    __threadfence();
    meet_warpgroup(consumer + 1);
    if (threadIdx.x % 128 == 0) {
        __threadfence();
        atomicExch(&exchange.ready[blockIdx.x * READERS + place], 1);
    }
}

// Adds another block's sums, as soon as they are there.
__device__ void take_over(float (&d)[HALVES][SUMS], Exchange exchange, int block, int consumer) {
    int place = TURNS ? 0 : consumer;
    if (threadIdx.x % 128 == 0) {
        while (atomicCAS(&exchange.ready[block * READERS + place], 1, 0) == 0) {}
        __threadfence();
    }
    meet_warpgroup(consumer + 1);  // what thread 0 may see now, all may
    const float* from = place_of(exchange, block, place);
#pragma unroll
    for (int i = 0; i < HALVES * SUMS; ++i)
        d[i / SUMS][i % SUMS] += __ldcg(from + i * 128);
}

// Adds what the clusters after this one have summed up of its tile.
__device__ void take_all(float (&d)[HALVES][SUMS], Exchange exchange, int cuts, int consumer) {
    for (int i = 1; i < cuts; ++i)
        take_over(d, exchange, blockIdx.x + i * CLUSTER, consumer);
}

// The scales of a tile of 8-bit floats: asked for before its products, of columns a thread's own,
// which it shares with the others when they are needed.
struct TileScales {
    static constexpr int OWN = (BN + 127) / 128;
    float rows[HALVES][2], columns[OWN];

    __device__ TileScales(Scales scales, Place at, const Problem& problem) {
#pragma unroll
        for (int i = 0; i < HALVES * 2; ++i) {
            int row = at.row + own_row() + i / 2 * 64 + i % 2 * 8;
            rows[i / 2][i % 2] = factor(scales.a, row, problem.m, at.matrix);
        }
#pragma unroll
        for (int i = 0; i < OWN; ++i)
            columns[i] = factor(scales.b, at.column + place(i), problem.n, at.matrix);
    }
    __device__ static int place(int i) {
        return i * 128 + threadIdx.x % 128;
    }
    // They are seen after the next meeting.
    __device__ void share(float* all) const {
#pragma unroll
        for (int i = 0; i < OWN; ++i)
            if (KIND == FP8 && place(i) < BN)
                all[place(i)] = columns[i];
    }
};

// Scales four sums of two rows, from a column on.
__device__ void scale(float (&out)[4], const float* d, const float* of_columns,
                      const float (&of_rows)[2], int column) {
    float2 two = {1, 1};
    if (KIND == FP8)
        two = *(const float2*)&of_columns[column + threadIdx.x % 4 * 2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        out[i] = KIND == FP8 ? d[i] * (i % 2 ? two.y : two.x) * of_rows[i / 2] : d[i];
}

// Puts this thread's sums of some columns into a box, swizzled as the map says.
constexpr int PUT = KIND == TF32 ? 8 : 16;  // columns at a time
__device__ void put(result (&box)[64][BOX], const float (&d)[PUT / 2], int column) {
    int thread = threadIdx.x % 128;
#if KIND == TF32
    int y = own_row();
    int piece = column % BOX / 4 + thread % 4 / 2;
    int x = thread % 2 * 2;
    *(float2*)&box[y][(piece ^ y % 8) * 4 + x] = float2{d[0], d[1]};
    *(float2*)&box[y + 8][(piece ^ y % 8) * 4 + x] = float2{d[2], d[3]};
#else
    int matrix = thread % 32 / 8;  // of the four 8 x 8 matrices that a warp stores at a time
    int y = thread / 32 * 16 + matrix % 2 * 8 + thread % 8;
    unsigned r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        r[i] = packed(d[i * 2], d[i * 2 + 1]);
    int piece = (column % BOX / 8 + matrix / 2) ^ (y % 8);
    store_matrices(&box[y][piece * 8], r);
#endif
}

// Sends 64 rows of results to C as boxes through shared memory.
__device__ void store_boxes(Shared& s, const TensorMap* map, const float (&d)[SUMS],
                            const float (&of_rows)[2], int consumer, Place at) {
    bool first = threadIdx.x % 128 == 0;
#pragma unroll
    for (int column = 0; column < BN; column += PUT) {
        if (column % (BOXES * BOX) == 0) {
            if (first)
                stores_have_read();  // the boxes before
            meet_warpgroup(consumer + 1);
        }
        float scaled[PUT / 2];
#pragma unroll
        for (int i = 0; i < PUT; i += 8)
            scale(*(float (*)[4]) & scaled[i / 2], &d[(column + i) / 2], s.scales[consumer],
                  of_rows, column + i);
        put(s.c[consumer][column / BOX % BOXES], scaled, column);
        if ((column + PUT) % (BOXES * BOX) == 0) {  // complete
            show_to_copy_engine();
            meet_warpgroup(consumer + 1);
            if (first) {
                int x = column + PUT - BOXES * BOX;
                for (int box = 0; box < BOXES; ++box)
                    store_box(map, s.c[consumer][box], at.column + x + box * BOX, at.row,
                              at.matrix);
                close_stores();
            }
        }
    }
}

// The same one by one, where rows of C do not start at multiples of 16 bytes.
__device__ void store_each(Shared& s, result* c, const float (&d)[SUMS], const float (&of_rows)[2],
                           int consumer, Place at, const Problem& problem) {
    meet_warpgroup(consumer + 1);
    int row = at.row + own_row();
    c += (size_t)at.matrix * problem.m * problem.n;
#pragma unroll
    for (int column = 0; column < BN; column += 8) {
        float scaled[4];
        scale(scaled, &d[column / 2], s.scales[consumer], of_rows, column);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int y = row + i / 2 * 8;
            int x = at.column + column + threadIdx.x % 4 * 2 + i % 2;
            if (y < problem.m && x < problem.n)
                c[(size_t)y * problem.n + x] = rounded(scaled[i]);
        }
    }
    meet_warpgroup(consumer + 1);  // nobody reads the scales any more
}

__device__ void consume(Shared& s, const TensorMap* map_c, result* c, Scales scales,
                        Exchange exchange, const Problem& problem, int consumer) {
    CutParts parts = problem.parts();
    bool boxes = problem.n * sizeof(result) % 16 == 0;
    Slot slot;
    Part part;
    float d[HALVES][SUMS];
    for (int i = 0; parts.next(part); ++i) {
        int steps = part.last - part.first;
        if (TURNS && i % 2 != consumer) {
            slot.skip(steps);
            continue;
        }
        if (TURNS)
            wait_for_turn(s, consumer, i / 2);
        Place at = problem.place(part.tile);
        at.row += TURNS ? 0 : consumer * ROWS;
        TileScales of_tile(scales, at, problem);
        add_steps(d, s, slot, consumer, steps);
        if (part.first > 0) {
            hand_over(d, exchange, consumer);
            continue;
        }
        if (part.last < parts.steps)
            take_all(d, exchange, parts.cuts, consumer);
        of_tile.share(s.scales[consumer]);
#pragma unroll
        for (int half = 0; half < HALVES; ++half) {
            if (boxes)
                store_boxes(s, map_c, d[half], of_tile.rows[half], consumer, at);
            else
                store_each(s, c, d[half], of_tile.rows[half], consumer, at, problem);
            at.row += 64;
        }
    }
    if (boxes && threadIdx.x % 128 == 0)
        stores_have_read();
}

#if CLUSTER == 1
#define LAUNCHED_AS __launch_bounds__(THREADS, PER_SM)
#else
#define LAUNCHED_AS __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, PER_SM)
#endif
__device__ void meet_all() {
    if (CLUSTER == 1)
        __syncthreads();
    else
        cluster_sync();
}

__global__ LAUNCHED_AS void matmul(result* c, const __grid_constant__ TensorMap map_c,
                                   const __grid_constant__ TensorMap map_a,
                                   const __grid_constant__ TensorMap map_b, const float* scales_a,
                                   const float* scales_b, float* sums, int* ready, int m, int n,
                                   int k, int batch, int whole, int cuts) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    Problem problem(m, n, k, batch, whole, cuts);
    if (threadIdx.x == 0) {
        fetch_map(&map_a);
        fetch_map(&map_b);
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&s.full[i], 1);  // this block's producer
            barrier_init(&s.empty[i], READERS * CLUSTER);
        }
        barrier_init(&s.turn[0], 1);
        barrier_init(&s.turn[1], 1);
        barriers_ready();
    }
    meet_all();
    int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);  // the same for a whole warp
    if (warpgroup == 0) {
        if (TRADED)
            keep_registers<KEPT>();
        if (threadIdx.x == 0)
            produce(s, &map_a, &map_b, problem);
    } else {
        if (TRADED)
            take_registers<TAKEN>();
        consume(s, &map_c, c, {scales_a, scales_b}, {sums, ready}, problem, warpgroup - 1);
    }
    if (CLUSTER > 1)
        cluster_sync();  // a block must not end while the other still copies into it
}
