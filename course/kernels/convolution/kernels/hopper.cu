// Convolution as a matrix product that is never made: pixels x (taps, channels) times weights.
// x: NHWC, weights: K, R, S, C, all bfloat16, sums in float32. The copy engine's im2col mode
// gathers a tile of x for one tap and 64 channels; wgmma multiplies it by that tap's weights.
// TURNED 1: the data gradient. x is dy, the reduction runs over K, taps count backwards.
// Blocks stay and take tile after tile; two blocks of a cluster share the weights.
// Grid: CLUSTER * clusters, block: THREADS, dynamic shared memory: sizeof(Shared).
#include "implicit_gemm.cuh"

#ifndef TURNED
#define TURNED 0
#endif
#ifndef CONSUMERS
#define CONSUMERS 3  // warp groups that multiply, 64 pixels each
#endif
#ifndef BN
#define BN 256  // outputs (channels of the result) of a tile
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef CLUSTER
#define CLUSTER 2
#endif

constexpr int BM = 64 * CONSUMERS;
// Three warp groups with 128 sums a thread leave no registers for a fourth: one of them asks for
// the tiles then.
constexpr bool OWN_PRODUCER = CONSUMERS < 3;
constexpr int THREADS = 128 * (CONSUMERS + OWN_PRODUCER);
constexpr int PART = BN / CLUSTER;  // of the weights' outputs, which each block fetches for both
static_assert(!TURNED || PART % BOX == 0, "turned, a block fetches whole boxes of 64 outputs");

struct Stage {
    bf16 pixels[BM][BOX];
    bf16 weights[BN * BOX];  // BN rows of 64 channels; TURNED: boxes of 64 channels x 64 outputs
};

struct Shared {
    Stage stage[STAGES];
    bf16 boxes[CONSUMERS][2][64][BOX];
    barrier full[STAGES], empty[STAGES];
};

struct Tiles {
    int down, across;

    __device__ Tiles(const Problem& p)
        : down((p.pixels() + CLUSTER * BM - 1) / (CLUSTER * BM)),
          across((p.outputs + BN - 1) / BN) {}
    __device__ int count() const {
        return down * across;
    }
    __device__ int row(int t) const {
        int rank = CLUSTER == 1 ? 0 : cluster_rank();
        return (t / across * CLUSTER + rank) * BM;
    }
    __device__ int column(int t) const {
        return t % across * BN;
    }
};

__device__ void load_weights_box(void* to, const TensorMap* map, barrier* full, int x, int y,
                                 int z) {
    if (CLUSTER == 1)
        load_box(to, map, full, x, y, z);
    else
        load_box_to_both(to, map, full, x, y, z);
}

// This block's part of the weights of a tap, for 64 of the channels summed over.
__device__ void load_weights(Stage& s, const TensorMap* w, barrier* full, int tap, int channel,
                             int output) {
    int first = CLUSTER == 1 ? 0 : cluster_rank() * PART;
    bf16* to = s.weights + first * BOX;
    if (!TURNED)
        load_weights_box(to, w, full, channel, tap, output + first);
    for (int i = 0; TURNED && i < PART; i += BOX)
        load_weights_box(to + i * BOX, w, full, output + first + i, tap, channel);
}

// Who asks for the tiles, step after step. One thread of the block.
struct Feeder {
    Slot<STAGES> slot;
    int tile, tap = 0, channel = 0, output;
    int right = 0, down = 0;  // where the tap is
    Pixel corner;

    __device__ Feeder(const Problem& p) : tile(blockIdx.x / CLUSTER) {
        begin_tile(p);
    }
    __device__ void begin_tile(const Problem& p) {
        Tiles tiles(p);
        corner = p.corner(tiles.row(tile));
        output = tiles.column(tile);
    }
    __device__ bool more(const Problem& p) const {
        return tile < Tiles(p).count();
    }
    // Waits until the next stage is free, in both blocks, and asks for the next step's tiles.
    __device__ void feed(Shared& s, const TensorMap* x, const TensorMap* w, const Problem& p) {
        barrier* full = &s.full[slot.i];
        Stage& stage = s.stage[slot.i];
        barrier_wait(&s.empty[slot.i], slot.parity ^ 1);
        barrier_expect(full, sizeof(Stage));
        load_pixels(stage.pixels, x, full, channel, corner, right, down);
        int its_tap = TURNED ? p.rows * p.columns - 1 - tap : tap;
        load_weights(stage, w, full, its_tap, channel, output);
        slot.next();
        advance(p);
    }
    __device__ void advance(const Problem& p) {
        channel += BOX;
        if (channel < p.channels)
            return;
        channel = 0;
        ++tap;
        right += p.dilation;
        if (right < p.columns * p.dilation)
            return;
        right = 0;
        down += p.dilation;
        if (tap < p.rows * p.columns)
            return;
        tap = down = 0;
        tile += gridDim.x / CLUSTER;
        begin_tile(p);
    }
};

// Queues d (+)= this warp group's 64 pixels times the weights.
__device__ void multiply(float (&d)[BN / 2], const Stage& s, int warpgroup, bool add) {
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < BOX; k += 16) {
        descriptor a = tile_for_wgmma(&s.pixels[warpgroup * 64][k], 0);
        descriptor b = tile_for_wgmma(s.weights + k, 0);
        if (TURNED)
            b = tile_for_wgmma(s.weights + k * BOX, sizeof(bf16) * BOX * BOX);
        wgmma<0, TURNED>(d, a, b, add || k > 0);
    }
    wgmma_close_group();
}

// Tells the producers of all blocks that copy into this stage: it may be overwritten.
__device__ void give_back(Shared& s, int slot) {
    int thread = threadIdx.x % 128;
    if (thread < CLUSTER)
        barrier_arrive_at(&s.empty[slot], thread);
}

__device__ void consume(Shared& s, const TensorMap* y, const TensorMap* x, const TensorMap* w,
                        const Problem& p, int warpgroup) {
    Tiles tiles(p);
    Slot<STAGES> slot;
    Feeder feeder(p);
    bool feeds = !OWN_PRODUCER && threadIdx.x == 0;
    for (int i = 0; i < STAGES - 1; ++i)
        if (feeds && feeder.more(p))
            feeder.feed(s, x, w, p);
    int steps = p.rows * p.columns * p.chunks();
    float d[BN / 2];
    for (int t = blockIdx.x / CLUSTER; t < tiles.count(); t += gridDim.x / CLUSTER) {
        int before = -1;
        for (int step = 0; step < steps; ++step) {
            barrier_wait(&s.full[slot.i], slot.parity);
            multiply(d, s.stage[slot.i], warpgroup, step > 0);
            wgmma_wait<1>();
            if (before >= 0)
                give_back(s, before);
            before = slot.i;
            slot.next();
            if (feeds && feeder.more(p))
                feeder.feed(s, x, w, p);
            __syncwarp();
        }
        wgmma_wait<0>();
        give_back(s, before);
        store_tile(y, s.boxes[warpgroup], d, tiles.row(t) + warpgroup * 64, tiles.column(t));
    }
    if (threadIdx.x % 128 == 0)
        stores_have_arrived();
}

#define LAUNCHED_AS __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1)
__global__ LAUNCHED_AS void convolve(const __grid_constant__ TensorMap y,
                                     const __grid_constant__ TensorMap x,
                                     const __grid_constant__ TensorMap w, const Problem p) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&s.full[i], 1);  // this block's producer
            barrier_init(&s.empty[i], CONSUMERS * CLUSTER);
        }
        barriers_ready();
    }
    cluster_sync();
    int warpgroup = threadIdx.x / 128;
    if (OWN_PRODUCER && warpgroup == CONSUMERS) {
        keep_40_registers();
        Feeder feeder(p);
        while (threadIdx.x % 128 == 0 && feeder.more(p))
            feeder.feed(s, &x, &w, p);
    } else {
        if (OWN_PRODUCER)
            take_232_registers();
        consume(s, &y, &x, &w, p, warpgroup);
    }
    cluster_sync();  // a block must not end while the other still copies into it
}
