// C = A B at any size, on Hopper: hopper.cu for any numbers, any tile, and a batch of matrices.
// Blocks stay and take tile after tile. Tiles that would leave most blocks idle at the end are cut
// along k: who has a tile's first step adds what others have summed up of it, in their order, so
// the result is the same in every run. All blocks must run at the same time.
// BM x BN: a block's tile. CONSUMERS: warp groups that share its rows. CLUSTER 2: two blocks share
// what both need of B. PER_SM: blocks that an SM should have room for. HIGH: tiles that run together
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

constexpr int ROWS = BM / CONSUMERS;  // of a consumer
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
};
using Slot = SlotOf<STAGES>;

// The launch, as every role sees it.
struct Problem {
    int m, n, k, batch, whole;
    TilesOf<BM, BN, CLUSTER, HIGH> tiles;

    __device__ Problem(int m, int n, int k, int batch, int whole)
        : m(m), n(n), k(k), batch(batch), whole(whole), tiles(m, n) {}
    __device__ Parts parts() const {
        int steps = (k + BK - 1) / BK;
        return Parts(tiles.count() * batch, whole, steps, gridDim.x / CLUSTER,
                     blockIdx.x / CLUSTER);
    }
    __device__ Place place(int tile) const {
        int matrix = tile / tiles.count();
        int in_matrix = tile - matrix * tiles.count();
        return {tiles.row(in_matrix), tiles.column(in_matrix), matrix};
    }
};

// Where blocks leave sums for others: [block][consumer][sum][thread], and a flag for each consumer,
// zero before and after a launch.
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
    Parts parts = problem.parts();
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
        multiply(d, s.stage[slot.i], consumer * ROWS, step > 0);
        wgmma_wait<1>();
        if (before >= 0)
            give_back(s, before);
        before = slot.i;
        slot.next();
    }
    wgmma_wait<0>();
    give_back(s, before);
}

__device__ float* place_of(Exchange exchange, int block, int consumer) {
    size_t each = HALVES * SUMS * 128;
    return exchange.sums + ((size_t)block * CONSUMERS + consumer) * each + threadIdx.x % 128;
}

// Leaves this consumer's sums for another block. The fence comes before the flag: who sees the flag
// sees the sums too.
__device__ void hand_over(const float (&d)[HALVES][SUMS], Exchange exchange, int consumer) {
    float* to = place_of(exchange, blockIdx.x, consumer);
#pragma unroll
    for (int i = 0; i < HALVES * SUMS; ++i)
        __stcg(to + i * 128, d[i / SUMS][i % SUMS]);
    __threadfence();
    meet_warpgroup(consumer + 1);
    if (threadIdx.x % 128 == 0) {
        __threadfence();
        atomicExch(&exchange.ready[blockIdx.x * CONSUMERS + consumer], 1);
    }
}

// Adds another block's sums, as soon as they are there.
__device__ void take_over(float (&d)[HALVES][SUMS], Exchange exchange, int block, int consumer) {
    if (threadIdx.x % 128 == 0) {
        while (atomicCAS(&exchange.ready[block * CONSUMERS + consumer], 1, 0) == 0) {}
        __threadfence();
    }
    meet_warpgroup(consumer + 1);  // what thread 0 may see now, all may
    const float* from = place_of(exchange, block, consumer);
#pragma unroll
    for (int i = 0; i < HALVES * SUMS; ++i)
        d[i / SUMS][i % SUMS] += __ldcg(from + i * 128);
}

// Adds what the clusters after this one have summed up of its tile.
__device__ void take_all(float (&d)[HALVES][SUMS], Exchange exchange, const Parts& parts,
                         const Part& part, int consumer) {
    int rank = CLUSTER == 1 ? 0 : cluster_rank();
    parts.each_other(part.tile, blockIdx.x / CLUSTER, [&](int cluster) {
        take_over(d, exchange, cluster * CLUSTER + rank, consumer);
    });
}

// Scales sums of 8-bit floats.
__device__ void scale(float (&d)[SUMS], Scales scales, Place at, const Problem& problem) {
    if (KIND != FP8 || !scales.a)
        return;
    int row = at.row + own_row();
    float upper = factor(scales.a, row, problem.m, at.matrix);
    float lower = factor(scales.a, row + 8, problem.m, at.matrix);
#pragma unroll
    for (int j = 0; j < SUMS; j += 4) {
        int column = at.column + j * 2 + threadIdx.x % 4 * 2;
        float left = factor(scales.b, column, problem.n, at.matrix);
        float right = factor(scales.b, column + 1, problem.n, at.matrix);
        d[j] *= upper * left;
        d[j + 1] *= upper * right;
        d[j + 2] *= lower * left;
        d[j + 3] *= lower * right;
    }
}

// Puts 8 or 16 columns of this thread's sums into a box, swizzled as the map says.
__device__ void put(result (&box)[64][BOX], const float* d, int column) {
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

constexpr int PUT = KIND == TF32 ? 8 : 16;  // columns at a time

// Sends 64 rows of results to C as boxes through shared memory.
__device__ void store_boxes(Shared& s, const TensorMap* map, const float (&d)[SUMS], int consumer,
                            Place at) {
    bool first = threadIdx.x % 128 == 0;
#pragma unroll
    for (int column = 0; column < BN; column += PUT) {
        if (column % (BOXES * BOX) == 0) {
            if (first)
                stores_have_read();  // the boxes before
            meet_warpgroup(consumer + 1);
        }
        put(s.c[consumer][column / BOX % BOXES], &d[column / 2], column);
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
__device__ void store_each(result* c, const float (&d)[SUMS], Place at, const Problem& problem) {
    int row = at.row + own_row();
    int column = at.column + threadIdx.x % 4 * 2;
    c += (size_t)at.matrix * problem.m * problem.n;
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        int y = row + i / 2 % 2 * 8;
        int x = column + i / 4 * 8 + i % 2;
        if (y < problem.m && x < problem.n)
            c[(size_t)y * problem.n + x] = rounded(d[i]);
    }
}

__device__ void consume(Shared& s, const TensorMap* map_c, result* c, Scales scales,
                        Exchange exchange, const Problem& problem, int consumer) {
    Parts parts = problem.parts();
    bool boxes = problem.n * sizeof(result) % 16 == 0;
    Slot slot;
    Part part;
    float d[HALVES][SUMS];
    while (parts.next(part)) {
        add_steps(d, s, slot, consumer, part.last - part.first);
        if (part.first > 0) {
            hand_over(d, exchange, consumer);
            continue;
        }
        if (part.last < parts.steps)
            take_all(d, exchange, parts, part, consumer);
        Place at = problem.place(part.tile);
        at.row += consumer * ROWS;
#pragma unroll
        for (int half = 0; half < HALVES; ++half) {
            scale(d[half], scales, at, problem);
            if (boxes)
                store_boxes(s, map_c, d[half], consumer, at);
            else
                store_each(c, d[half], at, problem);
            at.row += 64;
        }
    }
    if (boxes && threadIdx.x % 128 == 0)
        stores_have_arrived();
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
                                   int k, int batch, int whole) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    Problem problem(m, n, k, batch, whole);
    if (threadIdx.x == 0) {
        fetch_map(&map_a);
        fetch_map(&map_b);
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&s.full[i], 1);  // this block's producer
            barrier_init(&s.empty[i], CONSUMERS * CLUSTER);
        }
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
