// What the two ways to multiply 8-bit floats (fp8_matmul.cu, fp8_turns.cu) share: tiles, the ring
// of stages, the producer that fills it. They say before: WIDTH of a tile, STAGES, CLUSTER, HIGH,
// SPLIT_LAST.
#pragma once
#include "../../matmul/kernels/hopper_rounds.cuh"
#include "wgmma_e4m3.cuh"

using e4m3 = unsigned char;
constexpr int BM = 128, BN = WIDTH, BK = 128;
constexpr int BOX = 64;  // columns of C in a box: 128 bytes
constexpr int BOXES = BN == 192 ? 1 : 2;  // that leave together, as many as there is room for

struct Stage {
    e4m3 a[BM][BK];
    e4m3 b[BN][BK];
};

struct Ring {
    Stage stage[STAGES];
    bf16 c[2][BOXES][64][BOX];  // results of each consumer, on their way to C
    float scales[2][BN];  // of a tile's columns, for each consumer
    barrier full[STAGES], empty[STAGES];
};

// The matrices and their scales, as the launcher gives them.
struct Scales {
    const float* a;
    const float* b;
};

using Tiles = TilesOf<BM, BN, CLUSTER, HIGH>;
using Slot = SlotOf<STAGES>;

// What a cluster has to do: whole tiles in turn. With SPLIT_LAST, tiles that are left over for at
// most half of the clusters are cut along k, so that all have a part.
struct Shares {
    int tiles, k, clusters, parts;
    int own = blockIdx.x / CLUSTER;

    __device__ Shares(int tiles, int k) : tiles(tiles), k(k), clusters(gridDim.x / CLUSTER) {
        int steps = (k + BK - 1) / BK;
        int over = left();
        parts = SPLIT_LAST && over > 0 ? min(clusters / over, steps) : 1;
    }
    __device__ int left() const {
        return tiles % clusters;
    }
    // Whether this cluster's i-th share is a part of a tile.
    __device__ bool is_part(int i) const {
        return parts > 1 && i == tiles / clusters;
    }
    __device__ int tile(int i) const {
        return i * clusters + (is_part(i) ? own / parts : own);
    }
    __device__ bool any(int i) const {
        return i <= tiles / clusters && tile(i) < tiles;
    }
    // Where its numbers begin along k, and where they end.
    __device__ int first(int i) const {
        return is_part(i) ? step_of(own % parts) * BK : 0;
    }
    __device__ int last(int i) const {
        return is_part(i) ? min(k, step_of(own % parts + 1) * BK) : k;
    }
    __device__ int step_of(int part) const {
        return (k + BK - 1) / BK * part / parts;
    }
};

// The thread's warp group. It comes from lane 0, so that the compiler knows it to be the same in a
// whole warp: what follows from it, such as where tiles lie, is then computed once for all lanes.
__device__ int own_warpgroup() {
    return __shfl_sync(~0u, threadIdx.x / 128, 0);
}

// ---- the producer

// Asks for a step's tiles: the block's own of A, and of B its part for all blocks of the cluster.
// The tensor maps are made for numbers of two bytes, so k counts in pairs here.
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

__device__ void produce(Ring& s, const CUtensorMap* a, const CUtensorMap* b, int m, int n, int k) {
    Tiles tiles(m, n);
    Shares shares(tiles.count(), k);
    Slot slot;
    for (int i = 0; shares.any(i); ++i) {
        int row = tiles.row(shares.tile(i));
        int column = tiles.column(shares.tile(i));
        for (int x = shares.first(i); x < shares.last(i); x += BK) {
            barrier_wait(&s.empty[slot.i], slot.parity ^ 1);  // free, in all blocks
            load(s.stage[slot.i], a, b, &s.full[slot.i], row, column, x);
            slot.next();
        }
    }
}

// ---- for the consumers

// Tells the producers of all blocks that copy into this stage: it may be overwritten.
__device__ void give_back(Ring& s, int slot) {
    int thread = threadIdx.x % 128;
    if (thread < CLUSTER)
        barrier_arrive_at(&s.empty[slot], thread);
}

// Two neighbours among a thread's sums, as bf16 in one register.
__device__ unsigned packed(float first, float second) {
    __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    return *(unsigned*)&both;
}
