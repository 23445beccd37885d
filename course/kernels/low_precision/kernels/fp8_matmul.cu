// C = A B in 8-bit floats (e4m3), with scales: Hopper's matmul (../../matmul/kernels/hopper.cu) for
// numbers of one byte. A is m x k, B is stored as n x k, so both have their rows along k.
//
// ROW_SCALES: a factor for each row of A and each column of B. They multiply C once, at the end.
// BLOCK_SCALES: a factor for every 128 numbers of a row of A and every 128 x 128 of B. Then each
//   128 of k have sums of their own, which are scaled and added up in float32; twice the sums need
//   twice the registers, so tiles are half as wide (WIDTH).
// A block stays for tile after tile: a producer thread fills a ring of stages, two warp groups
// multiply 64 rows each. Two blocks of a cluster share what both need of B.
// Grid: CLUSTER * clusters, block: 384 threads, dynamic shared memory: sizeof(Shared).
#ifndef BLOCK_SCALES
#define BLOCK_SCALES 0
#endif
#ifndef WIDTH
#define WIDTH (BLOCK_SCALES ? 128 : 256)
#endif
#ifndef STAGES
#define STAGES (BLOCK_SCALES ? 6 : 4)
#endif
#ifndef CLUSTER
#define CLUSTER 2
#endif
#ifndef HIGH
#define HIGH 8  // tiles: the height of a patch that clusters take together
#endif

#define SPLIT_LAST 0
#include "fp8_tiles.cuh"

constexpr int SUMS = BN / 2;  // of a thread: 64 rows of BN columns, 128 threads
static_assert(BN % 128 == 0, "columns have scales, and boxes leave, 128 at a time");

using Shared = Ring;

// ---- the consumers

// Queues d (+)= this warp group's 64 rows of s.a times s.b.
__device__ void multiply(float (&d)[SUMS], const Stage& s, int warpgroup, bool add) {
    descriptor a = tile_for_wgmma(s.a[warpgroup * 64], 0);
    descriptor b = tile_for_wgmma(s.b, 0);
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < BK; k += 32)
        wgmma_e4m3(d, a + k / 16, b + k / 16, add || k > 0);
    wgmma_close_group();
}

// Where in the ring a consumer is, and the stage that it has not given back yet.
struct Place {
    Slot slot;
    int before = -1;
};

// Queues a step's products. Those of the step before are done then, and their stage is free.
__device__ void queue_step(float (&d)[SUMS], Shared& s, Place& at, int warpgroup, bool add) {
    barrier_wait(&s.full[at.slot.i], at.slot.parity);
    multiply(d, s.stage[at.slot.i], warpgroup, add);
}

__device__ void finish_step_before(Shared& s, Place& at) {
    wgmma_wait<1>();
    if (at.before >= 0)
        give_back(s, at.before);
    at.before = at.slot.i;
    at.slot.next();
}

__device__ void finish_all(Shared& s, Place& at) {
    wgmma_wait<0>();
    give_back(s, at.before);
    at.before = -1;
}

// ---- results: scaled and rounded while nothing is multiplied, stored while the next tile is

// This thread's first row within its warp group's 64; the second is 8 below.
__device__ int own_row() {
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
}

// A tile's results as bfloat16, two to a register, and where they go.
struct Results {
    unsigned two[SUMS / 2];
    int row, column;
    bool any = false;
};

// A tile's scales, asked for before its products begin. Beyond the edge anything will do.
struct TileScales {
    float upper, lower;  // of this thread's two rows
    float columns[BN / 128];  // of column thread + i * 128: for all, through shared memory

    __device__ TileScales(Scales scales, int row, int column, int m, int n) {
        row += own_row();
        upper = scales.a[min(row, m - 1)];
        lower = scales.a[min(row + 8, m - 1)];
        for (int i = 0; i < BN / 128; ++i)
            columns[i] = scales.b[min(column + i * 128 + (int)threadIdx.x % 128, n - 1)];
    }
};

__device__ void scale_and_pack(Results& out, const float (&d)[SUMS], const TileScales& scales,
                               float (&shared)[BN], int warpgroup) {
    for (int i = 0; i < BN / 128; ++i)
        shared[i * 128 + threadIdx.x % 128] = scales.columns[i];
    meet_warpgroup(warpgroup + 1);
#pragma unroll
    for (int j = 0; j < BN / 8; ++j) {
        float2 of_b = *(const float2*)&shared[j * 8 + threadIdx.x % 4 * 2];
        float upper[2] = {d[j * 4] * of_b.x, d[j * 4 + 1] * of_b.y};
        float lower[2] = {d[j * 4 + 2] * of_b.x, d[j * 4 + 3] * of_b.y};
        out.two[j * 2] = packed(upper[0] * scales.upper, upper[1] * scales.upper);
        out.two[j * 2 + 1] = packed(lower[0] * scales.lower, lower[1] * scales.lower);
    }
    meet_warpgroup(warpgroup + 1);  // all have read the scales
}

// Sends two boxes of 64 x 64 through shared memory, the PAIR-th of this warp group's 64 rows.
template <int PAIR>
__device__ void store_boxes(Shared& s, const CUtensorMap* map, const Results& results,
                            int warpgroup) {
    if (!results.any || PAIR * 128 >= BN)
        return;
    int thread = threadIdx.x % 128;
    int matrix = thread % 32 / 8;  // of the four 8 x 8 matrices that a warp stores at a time
    int y = thread / 32 * 16 + matrix % 2 * 8 + thread % 8;
    if (thread == 0)
        stores_have_read();  // the two boxes before
    meet_warpgroup(warpgroup + 1);
#pragma unroll
    for (int j = 0; j < 16; j += 2) {  // groups of 8 columns, two at a time
        unsigned r[4];
        for (int i = 0; i < 4; ++i)
            r[i] = results.two[PAIR * 128 / 8 % (BN / 8) * 2 + j * 2 + i];
        int piece = (j % 8 + matrix / 2) ^ (y % 8);  // swizzled, as the map says
        store_matrices(&s.c[warpgroup][j / 8][y][piece * 8], r);
    }
    show_to_copy_engine();
    meet_warpgroup(warpgroup + 1);
    if (thread == 0) {
        int x = results.column + PAIR * 2 * BOX;
        tma_store(map, s.c[warpgroup][0], x, results.row);
        tma_store(map, s.c[warpgroup][1], x + BOX, results.row);
        close_stores();
    }
}

// ---- a tile with scales of rows and columns

// The sums of a tile. The results of the tile before leave while the first steps are multiplied.
__device__ void add_steps(float (&d)[SUMS], Shared& s, Place& at, const CUtensorMap* map_c,
                          Results& results, int warpgroup, int k) {
    queue_step(d, s, at, warpgroup, false);
    store_boxes<0>(s, map_c, results, warpgroup);
    finish_step_before(s, at);
    if (k > BK)
        queue_step(d, s, at, warpgroup, true);
    store_boxes<1>(s, map_c, results, warpgroup);
    if (k > BK)
        finish_step_before(s, at);
    for (int x = 2 * BK; x < k; x += BK) {
        queue_step(d, s, at, warpgroup, true);
        finish_step_before(s, at);
    }
    finish_all(s, at);
}

// ---- a tile with scales of blocks

// Two rows' scales for one step, and b's, which is the same for the whole tile. They are multiplied
// when they are needed: by then they have come.
struct StepScales {
    float of_a[2], of_b;

    __device__ StepScales(Scales scales, int row, int column, int m, int k, int x) {
        int step = min(x, k - BK) / BK;
        const float* of_rows = scales.a + (size_t)step * m;
        of_b = scales.b[(size_t)(column / BK) * (k / BK) + step];
        row += own_row();
        of_a[0] = of_rows[min(row, m - 1)];
        of_a[1] = of_rows[min(row + 8, m - 1)];
    }
};

// The sums of a tile with a scale for every 128 of k. The next step's scales are asked for while
// this one's products are made; while one warp group adds, the other multiplies.
__device__ void add_scaled_steps(float (&d)[SUMS], Shared& s, Place& at, const CUtensorMap* map_c,
                                 Results& results, Scales scales, int warpgroup, int row,
                                 int column, int m, int k) {
    float step[SUMS];
    for (int i = 0; i < SUMS; ++i)
        d[i] = 0;
    StepScales next(scales, row, column, m, k, 0);
    for (int x = 0; x < k; x += BK) {
        queue_step(step, s, at, warpgroup, false);
        StepScales now = next;
        next = StepScales(scales, row, column, m, k, x + BK);
        if (x == 0)
            store_boxes<0>(s, map_c, results, warpgroup);
        wgmma_wait<0>();
        give_back(s, at.slot.i);
        at.slot.next();
        float factors[2] = {now.of_a[0] * now.of_b, now.of_a[1] * now.of_b};
#pragma unroll
        for (int i = 0; i < SUMS; ++i)
            d[i] += factors[i / 2 % 2] * step[i];
    }
}

__device__ void consume(Shared& s, const CUtensorMap* map_c, Scales scales, int warpgroup, int m,
                        int n, int k) {
    Tiles tiles(m, n);
    Place at;
    Results results;
    float d[SUMS];
    for (int t = blockIdx.x / CLUSTER; t < tiles.count(); t += gridDim.x / CLUSTER) {
        int row = tiles.row(t) + warpgroup * 64;
        int column = tiles.column(t);
#if BLOCK_SCALES
        add_scaled_steps(d, s, at, map_c, results, scales, warpgroup, row, column, m, k);
#pragma unroll
        for (int i = 0; i < SUMS; i += 2)
            results.two[i / 2] = packed(d[i], d[i + 1]);
#else
        TileScales of_tile(scales, row, column, m, n);
        add_steps(d, s, at, map_c, results, warpgroup, k);
        scale_and_pack(results, d, of_tile, s.scales[warpgroup], warpgroup);
#endif
        results.row = row;
        results.column = column;
        results.any = true;
    }
    store_boxes<0>(s, map_c, results, warpgroup);
    store_boxes<1>(s, map_c, results, warpgroup);
    if (threadIdx.x % 128 == 0)
        stores_have_arrived();
}

#define LAUNCHED_AS __cluster_dims__(CLUSTER) __launch_bounds__(384, 1)
__global__ LAUNCHED_AS void fp8_matmul(const __grid_constant__ CUtensorMap map_c,
                                       const __grid_constant__ CUtensorMap map_a,
                                       const __grid_constant__ CUtensorMap map_b,
                                       const float* scales_a, const float* scales_b, int m, int n,
                                       int k) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&s.full[i], 1);  // this block's producer
            barrier_init(&s.empty[i], 2 * CLUSTER);  // two consumers in each block
        }
        barriers_ready();
    }
    cluster_sync();
    int warpgroup = own_warpgroup() - 1;  // -1: the producer
    if (warpgroup < 0) {
        keep_40_registers();
        if (threadIdx.x == 0)
            produce(s, &map_a, &map_b, m, n, k);
    } else {
        take_232_registers();
        consume(s, &map_c, {scales_a, scales_b}, warpgroup, m, n, k);
    }
    cluster_sync();  // a block must not end while the other still copies into it
}
