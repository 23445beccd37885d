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
#include "wgmma_e4m3.cuh"

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

using e4m3 = unsigned char;
constexpr int BM = 128, BN = WIDTH, BK = 128;
constexpr int BOX = 64;  // columns of C that leave together: 128 bytes
constexpr int SUMS = BN / 2;  // of a thread: 64 rows of BN columns, 128 threads

struct Stage {
    e4m3 a[BM][BK];
    e4m3 b[BN][BK];
};

struct Shared {
    Stage stage[STAGES];
    bf16 c[2][2][64][BOX];  // two boxes of results a consumer, on their way to C
    barrier full[STAGES], empty[STAGES];
};

// The matrices and their scales, as the launcher gives them.
struct Scales {
    const float* a;
    const float* b;
};

// The tiles of C, each CLUSTER * 128 rows high and BN columns wide, in groups of HIGH rows of
// tiles. Of a cluster's tile, block 0 takes the upper 128 rows and block 1 the lower.
struct Tiles {
    int down, across;

    __device__ Tiles(int m, int n)
        : down((m + CLUSTER * BM - 1) / (CLUSTER * BM)), across((n + BN - 1) / BN) {}
    __device__ int count() const {
        return down * across;
    }
    __device__ int first_row(int t) const {
        return t / (HIGH * across) * HIGH;
    }
    __device__ int height(int t) const {
        return min(HIGH, down - first_row(t));
    }
    __device__ int row(int t) const {
        int tile_row = first_row(t) + t % (HIGH * across) % height(t);
        return (tile_row * CLUSTER + (CLUSTER == 1 ? 0 : cluster_rank())) * BM;
    }
    __device__ int column(int t) const {
        return t % (HIGH * across) / height(t) * BN;
    }
};

// A place in the ring of stages. parity: of the round, as its barriers count them.
struct Slot {
    int i = 0, parity = 0;

    __device__ void next() {
        if (++i == STAGES) {
            i = 0;
            parity ^= 1;
        }
    }
};

// ---- the producer

// Asks for a step's tiles: the block's own of A, and of B its part for all blocks of the cluster.
// Tensor maps count in pairs of numbers: they know no type of one byte.
__device__ void load(Stage& s, const CUtensorMap* a, const CUtensorMap* b, barrier* full, int row,
                     int column, int k) {
    barrier_expect(full, sizeof(Stage));
    tma_load(s.a, a, full, k / 2, row);
    if (CLUSTER == 1) {
        tma_load(s.b, b, full, k / 2, column);
    } else {
        int first = cluster_rank() * (BN / 2);
        tma_load_to_both(s.b[first], b, full, k / 2, column + first);
    }
}

__device__ void produce(Shared& s, const CUtensorMap* a, const CUtensorMap* b, int m, int n,
                        int k) {
    Tiles tiles(m, n);
    Slot slot;
    for (int t = blockIdx.x / CLUSTER; t < tiles.count(); t += gridDim.x / CLUSTER) {
        int row = tiles.row(t);
        int column = tiles.column(t);
        for (int x = 0; x < k; x += BK) {
            barrier_wait(&s.empty[slot.i], slot.parity ^ 1);  // free, in all blocks
            load(s.stage[slot.i], a, b, &s.full[slot.i], row, column, x);
            slot.next();
        }
    }
}

// ---- the consumers

// Queues d (+)= this warp group's 64 rows of s.a times s.b.
__device__ void multiply(float (&d)[SUMS], const Stage& s, int warpgroup, bool add) {
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < BK; k += 32) {
        descriptor a = tile_for_wgmma(&s.a[warpgroup * 64][k], 0);
        descriptor b = tile_for_wgmma(&s.b[0][k], 0);
        wgmma_e4m3(d, a, b, add || k > 0);
    }
    wgmma_close_group();
}

// Tells the producers of all blocks that copy into this stage: it may be overwritten.
__device__ void give_back(Shared& s, int slot) {
    int thread = threadIdx.x % 128;
    if (thread < CLUSTER)
        barrier_arrive_at(&s.empty[slot], thread);
}

// The sums of a tile, unscaled: while one step is multiplied, the next is already queued.
__device__ void add_steps(float (&d)[SUMS], Shared& s, Slot& slot, int warpgroup, int k) {
    int before = -1;
    for (int x = 0; x < k; x += BK) {
        barrier_wait(&s.full[slot.i], slot.parity);
        multiply(d, s.stage[slot.i], warpgroup, x > 0);
        wgmma_wait<1>();
        if (before >= 0)
            give_back(s, before);
        before = slot.i;
        slot.next();
    }
    wgmma_wait<0>();
    give_back(s, before);
}

// This thread's first row within its warp group's 64; the second is 8 below.
__device__ int own_row() {
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
}

// The scale of a row's 128 numbers from k on, or 0 beyond the last row.
__device__ float scale_of(const float* scales, int row, int rows, int k) {
    return row < rows ? scales[(size_t)(k / BK) * rows + row] : 0;
}

// The sums of a tile with a scale for every 128 of k: b's is the same for the whole tile.
__device__ void add_scaled_steps(float (&d)[SUMS], Shared& s, Slot& slot, Scales scales,
                                 int warpgroup, int row, int column, int m, int n, int k) {
    float step[SUMS];
    row += own_row();
    const float* of_b = scales.b + (size_t)(column / BK) * (k / BK);
    for (int i = 0; i < SUMS; ++i)
        d[i] = 0;
    for (int x = 0; x < k; x += BK) {
        float factor = of_b[x / BK];
        float factors[2] = {factor * scale_of(scales.a, row, m, x),
                            factor * scale_of(scales.a, row + 8, m, x)};
        barrier_wait(&s.full[slot.i], slot.parity);
        multiply(step, s.stage[slot.i], warpgroup, false);
        wgmma_wait<0>();
        give_back(s, slot.i);
        slot.next();
#pragma unroll
        for (int i = 0; i < SUMS; ++i)
            d[i] += factors[i / 2 % 2] * step[i];
    }
}

// Two neighbours among a thread's sums, as bf16 in one register.
__device__ unsigned packed(float first, float second) {
    __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    return *(unsigned*)&both;
}

// Multiplies by the scales of rows and columns. Beyond the edge anything will do.
__device__ void scale(float (&d)[SUMS], Scales scales, int row, int column, int m, int n) {
    row += own_row();
    float upper = scales.a[min(row, m - 1)];
    float lower = scales.a[min(row + 8, m - 1)];
#pragma unroll
    for (int j = 0; j < BN / 8; ++j) {
        int x = min(column + j * 8 + (int)threadIdx.x % 4 * 2, n - 2);
        float2 two = *(const float2*)(scales.b + x);
        d[j * 4] *= upper * two.x;
        d[j * 4 + 1] *= upper * two.y;
        d[j * 4 + 2] *= lower * two.x;
        d[j * 4 + 3] *= lower * two.y;
    }
}

// Writes this warp group's 64 x BN sums as boxes of 64 x 64 through shared memory, two at a time.
__device__ void store_boxes(Shared& s, const CUtensorMap* map, const float (&d)[SUMS],
                            int warpgroup, int row, int column) {
    int thread = threadIdx.x % 128;
    int matrix = thread % 32 / 8;  // of the four 8 x 8 matrices that a warp stores at a time
    int y = thread / 32 * 16 + matrix % 2 * 8 + thread % 8;
#pragma unroll
    for (int j = 0; j < BN / 8; j += 2) {  // groups of 8 columns, two at a time
        if (j % 16 == 0) {
            if (thread == 0)
                stores_have_read();  // the two boxes before
            meet_warpgroup(warpgroup + 1);
        }
        unsigned r[4];
        for (int i = 0; i < 4; ++i)
            r[i] = packed(d[j * 4 + i * 2], d[j * 4 + i * 2 + 1]);
        int piece = (j % 8 + matrix / 2) ^ (y % 8);  // swizzled, as the map says
        store_matrices(&s.c[warpgroup][j / 8 % 2][y][piece * 8], r);
        if (j % 16 == 14) {  // two boxes are complete
            show_to_copy_engine();
            meet_warpgroup(warpgroup + 1);
            if (thread == 0) {
                int x = column + j / 16 * 2 * BOX;
                tma_store(map, s.c[warpgroup][0], x, row);
                tma_store(map, s.c[warpgroup][1], x + BOX, row);
                close_stores();
            }
        }
    }
}

__device__ void consume(Shared& s, const CUtensorMap* map_c, Scales scales, int warpgroup, int m,
                        int n, int k) {
    Tiles tiles(m, n);
    Slot slot;
    float d[SUMS];
    for (int t = blockIdx.x / CLUSTER; t < tiles.count(); t += gridDim.x / CLUSTER) {
        int row = tiles.row(t) + warpgroup * 64;
        int column = tiles.column(t);
        if (BLOCK_SCALES) {
            add_scaled_steps(d, s, slot, scales, warpgroup, row, column, m, n, k);
        } else {
            add_steps(d, s, slot, warpgroup, k);
            scale(d, scales, row, column, m, n);
        }
        store_boxes(s, map_c, d, warpgroup, row, column);
    }
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
    int warpgroup = threadIdx.x / 128 - 1;  // -1: the producer
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
