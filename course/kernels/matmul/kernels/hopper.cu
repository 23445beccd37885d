// The fastest rung, and each of its ideas by itself. Beside the producer of wgmma_tma.cu:
// - blocks that stay: each takes tile after tile, and the next tile's copies begin while this one's
//   results are stored. The launcher's choice: as many blocks as there are SMs, or as tiles.
// - TMA_STORE: results leave through shared memory, as whole boxes, while the next tile is computed
// - GROUP: clusters that run together take a patch of tiles GROUP rows high (1: row by row)
// - CLUSTER 2: two blocks share what both need of B, each fetches half of it for both
// Grid: CLUSTER * clusters, block: 384 threads, dynamic shared memory: 229,440 bytes.
#include "hopper_rounds.cuh"
#include "hopper_tiles.cuh"

#ifndef TMA_STORE
#define TMA_STORE 1
#endif
#ifndef CLUSTER
#define CLUSTER 2
#endif
#ifndef GROUP
#define GROUP 8
#endif

constexpr int STAGES = 4;
struct Shared {
    Stage stage[STAGES];
    bf16 c[2][2][64][BOX];  // two boxes of results a consumer, on their way to C
    barrier full[STAGES], empty[STAGES];
};

using Tiles = TilesOf<BM, BN, CLUSTER, GROUP>;
using Slot = SlotOf<STAGES>;

// Asks for a step's tiles, in a cluster for the block's own part of A and half of B for both.
__device__ void load_shared(Stage& s, const CUtensorMap* a, const CUtensorMap* b, barrier* full,
                            int row, int column, int k) {
    barrier_expect(full, sizeof(Stage));
    tma_load(s.a, a, full, k, row);
    int first = cluster_rank() * 2;
    for (int j = first; j < first + 2; ++j)
        tma_load_to_both(s.b[j], b, full, column + j * BOX, k);
}

__device__ void produce(Shared& s, const CUtensorMap* a, const CUtensorMap* b, int m, int n,
                        int k) {
    Tiles tiles(m, n);
    Slot slot;
    for (int t = blockIdx.x / CLUSTER; t < tiles.count(); t += gridDim.x / CLUSTER) {
        int row = tiles.row(t);
        int column = tiles.column(t);
        for (int x = 0; x < k; x += BK) {
            barrier_wait(&s.empty[slot.i], slot.parity ^ 1);  // free, in both blocks
            if (CLUSTER == 1)
                load(s.stage[slot.i], a, b, &s.full[slot.i], row, column, x);
            else
                load_shared(s.stage[slot.i], a, b, &s.full[slot.i], row, column, x);
            slot.next();
        }
    }
}

// Tells the producers of all blocks that copy into this stage: it may be overwritten.
__device__ void give_back(Shared& s, int slot) {
    int thread = threadIdx.x % 128;
    if (thread < CLUSTER)
        barrier_arrive_at(&s.empty[slot], thread);
}

// Writes this warp group's 64 x 256 sums as 4 boxes of 64 x 64 through shared memory, two at a
// time.
__device__ void store_boxes(Shared& s, const CUtensorMap* map, const float (&d)[128], int warpgroup,
                            int row, int column) {
    int thread = threadIdx.x % 128;
    int matrix = thread % 32 / 8;  // of the four 8 x 8 matrices that a warp stores at a time
    int y = thread / 32 * 16 + matrix % 2 * 8 + thread % 8;
#pragma unroll
    for (int j = 0; j < 32; j += 2) {  // groups of 8 columns, two at a time
        if (j % 16 == 0) {
            if (thread == 0)
                stores_have_read();  // the two boxes before
            meet_warpgroup(warpgroup + 1);
        }
        unsigned r[4];
        for (int i = 0; i < 4; ++i)
            r[i] = packed(&d[j * 4 + i * 2]);
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

__device__ void consume(Shared& s, const CUtensorMap* map_c, bf16* c, int warpgroup, int m, int n,
                        int k) {
    Tiles tiles(m, n);
    Slot slot;
    float d[128];
    for (int t = blockIdx.x / CLUSTER; t < tiles.count(); t += gridDim.x / CLUSTER) {
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
        int row = tiles.row(t) + warpgroup * 64;
        if (TMA_STORE)
            store_boxes(s, map_c, d, warpgroup, row, tiles.column(t));
        else
            store(c, d, row, tiles.column(t), m, n);
    }
    if (TMA_STORE && threadIdx.x % 128 == 0)
        stores_have_arrived();
}

#define LAUNCHED_AS __cluster_dims__(CLUSTER) __launch_bounds__(384, 1)
__global__ LAUNCHED_AS void matmul(bf16* c, const __grid_constant__ CUtensorMap map_c,
                                   const __grid_constant__ CUtensorMap map_a,
                                   const __grid_constant__ CUtensorMap map_b, int m, int n, int k) {
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
        consume(s, &map_c, c, warpgroup, m, n, k);
    }
    cluster_sync();  // a block must not end while the other still copies into it
}
