// C = A B in 8-bit floats (e4m3), with a scale for each row of A and each column of B, in turns: a
// tile is one warp group's alone. While one multiplies, the other scales and stores what it has.
// Otherwise as fp8_matmul.cu. Grid, block and shared memory: as there.
// WIDTH: 128, or 192, which asks L2 for a fifth less: a row of A serves more columns.
// SPLIT_LAST: the tiles of the last round, if they are few, are cut along k: their sums meet in
// global memory, so one launch at a time.
#ifndef STAGES
#define STAGES 6
#endif
#ifndef CLUSTER
#define CLUSTER 2
#endif
#ifndef HIGH
#define HIGH 8  // tiles: the height of a patch that clusters take together
#endif

#ifndef SPLIT_LAST
#define SPLIT_LAST 0
#endif

#ifndef WIDTH
#define WIDTH 128
#endif
#include "fp8_tiles.cuh"

// Of a thread: 64 rows of BN columns, 128 threads. It has two of these.
constexpr int SUMS = BN / 2;

struct Shared : Ring {
    barrier turn[2];  // a consumer may look at the ring: the other's tile has all come
    int is_last[2];  // for each consumer: whether it adds the last part of a tile
};

// ---- the consumers

// Queues d (+)= 128 rows of s.a times s.b, 64 rows at a time.
__device__ void multiply(float (&d)[2][SUMS], const Stage& s, bool add) {
    descriptor upper = tile_for_wgmma(s.a[0], 0);
    descriptor lower = tile_for_wgmma(s.a[64], 0);
    descriptor b = tile_for_wgmma(s.b, 0);
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < BK; k += 32) {
        wgmma_e4m3(d[0], upper + k / 16, b + k / 16, add || k > 0);
        wgmma_e4m3(d[1], lower + k / 16, b + k / 16, add || k > 0);
    }
    wgmma_close_group();
}

// A barrier tells rounds of the ring apart by their parity only: nobody may wait for a stage that
// is more than a round away: first the other consumer must have seen all of its tile.
__device__ void add_steps(float (&d)[2][SUMS], Shared& s, Slot& slot, int warpgroup, int first,
                          int last) {
    int before = -1;
    for (int x = first; x < last; x += BK) {
        barrier_wait(&s.full[slot.i], slot.parity);
        multiply(d, s.stage[slot.i], x > first);
        wgmma_wait<1>();
        if (before >= 0)
            give_back(s, before);
        before = slot.i;
        slot.next();
    }
    if (threadIdx.x % 128 == 0)
        barrier_arrive(&s.turn[1 - warpgroup]);
    wgmma_wait<0>();
    give_back(s, before);
}

// ---- the parts of a tile: whoever adds the last one has the tile's sums

constexpr int MOST_PARTED = SPLIT_LAST ? 128 : 1;  // tiles: half of the clusters of any GPU
__device__ float parted[MOST_PARTED][CLUSTER][2 * SUMS][128];  // zero before and after a launch
__device__ int added[MOST_PARTED][CLUSTER];  // parts, likewise

// Adds this part to the others'. In which order they come is chance, and so is the last bit.
__device__ bool is_last_part(Shared& s, float (&d)[2][SUMS], int warpgroup, int tile, int parts) {
    int thread = threadIdx.x % 128;
    int rank = cluster_rank();
#pragma unroll
    for (int i = 0; i < 2 * SUMS; ++i)
        atomicAdd(&parted[tile][rank][i][thread], d[i / SUMS][i % SUMS]);
    __threadfence();
    meet_warpgroup(warpgroup + 1);  // all threads have added theirs
    if (thread == 0)
        s.is_last[warpgroup] = atomicAdd(&added[tile][rank], 1) == parts - 1;
    meet_warpgroup(warpgroup + 1);
    return s.is_last[warpgroup];
}

__device__ void take_sums(float (&d)[2][SUMS], int tile) {
    int thread = threadIdx.x % 128;
    int rank = cluster_rank();
    __threadfence();
#pragma unroll
    for (int i = 0; i < 2 * SUMS; ++i) {
        d[i / SUMS][i % SUMS] = __ldcg(&parted[tile][rank][i][thread]);
        parted[tile][rank][i][thread] = 0;
    }
    if (thread == 0)
        added[tile][rank] = 0;
}

// ---- results

// Scales 64 rows, and sends them to C as boxes through shared memory.
__device__ void store_half(Shared& s, const CUtensorMap* map, const float (&d)[SUMS],
                           const float* of_rows, int warpgroup, int row, int column, int m) {
    int thread = threadIdx.x % 128;
    int own = row + thread / 32 * 16 + thread % 32 / 4;
    float upper = of_rows[min(own, m - 1)];
    float lower = of_rows[min(own + 8, m - 1)];
    int matrix = thread % 32 / 8;  // of the four 8 x 8 matrices that a warp stores at a time
    int y = thread / 32 * 16 + matrix % 2 * 8 + thread % 8;
#pragma unroll
    for (int first = 0; first < BN / 8; first += BOXES * 8) {  // groups of 8 columns
        if (thread == 0)
            stores_have_read();  // the boxes before
        meet_warpgroup(warpgroup + 1);
#pragma unroll
        for (int j = 0; j < BOXES * 8; j += 2) {  // two at a time
            unsigned r[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int group = first + j + i / 2;
                float2 of_b = *(const float2*)&s.scales[warpgroup][group * 8 + thread % 4 * 2];
                float factor = i % 2 ? lower : upper;
                const float* two = &d[group * 4 + i % 2 * 2];
                r[i] = packed(two[0] * of_b.x * factor, two[1] * of_b.y * factor);
            }
            int piece = (j % 8 + matrix / 2) ^ (y % 8);  // swizzled, as the map says
            store_matrices(&s.c[warpgroup][j / 8][y][piece * 8], r);
        }
        show_to_copy_engine();
        meet_warpgroup(warpgroup + 1);
        if (thread == 0) {
            for (int box = 0; box < BOXES; ++box)
                tma_store(map, s.c[warpgroup][box], column + first * 8 + box * BOX, row);
            close_stores();
        }
    }
}

// The scales of a tile's columns, a thread's own: asked for early, shared with the others late.
struct ColumnScales {
    static constexpr int OWN = (BN + 127) / 128;
    float own[OWN];

    __device__ ColumnScales(const float* of_columns, int column, int n) {
#pragma unroll
        for (int i = 0; i < OWN; ++i)
            own[i] = of_columns[min(column + place(i), n - 1)];
    }
    __device__ static int place(int i) {
        return i * 128 + (int)threadIdx.x % 128;
    }
    __device__ void share(float (&all)[BN]) const {
#pragma unroll
        for (int i = 0; i < OWN; ++i)
            if (place(i) < BN)
                all[place(i)] = own[i];
    }
};

__device__ void consume(Shared& s, const CUtensorMap* map_c, Scales scales, int warpgroup, int m,
                        int n, int k) {
    Tiles tiles(m, n);
    Shares shares(tiles.count(), k);
    int steps = (k + BK - 1) / BK;
    Slot slot;
    slot.skip(warpgroup * steps);
    int turns = 0;
    float d[2][SUMS];
    for (int i = warpgroup; shares.any(i); i += 2) {
        int tile = shares.tile(i);
        int row = tiles.row(tile);
        int column = tiles.column(tile);
        ColumnScales of_columns(scales.b, column, n);
        if (warpgroup == 1 || turns > 0)
            barrier_wait(&s.turn[warpgroup], (turns - (warpgroup == 0)) % 2);
        ++turns;
        add_steps(d, s, slot, warpgroup, shares.first(i), shares.last(i));
        slot.skip(steps);  // the other's tile
        if (shares.is_part(i)) {
            int over = tile - (tiles.count() - shares.left());
            if (!is_last_part(s, d, warpgroup, over, shares.parts))
                break;
            take_sums(d, over);
        }
        of_columns.share(s.scales[warpgroup]);  // seen after the next meeting
        store_half(s, map_c, d[0], scales.a, warpgroup, row, column, m);
        store_half(s, map_c, d[1], scales.a, warpgroup, row + 64, column, m);
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
            barrier_init(&s.empty[i], CLUSTER);  // one consumer in each block
        }
        barrier_init(&s.turn[0], 1);
        barrier_init(&s.turn[1], 1);
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
