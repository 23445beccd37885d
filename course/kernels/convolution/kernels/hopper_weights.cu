// The weights' gradient on Hopper: dw (K x (taps, C)) = dy^T (K x pixels) times im2col(x) (pixels x
// (taps, C)). dy, x: NHWC bfloat16. The reduction over all pixels is long and dw is small, so each
// cluster takes an equal share of all steps, whatever tiles they belong to (stream-K), and writes
// the sums of each tile that it has touched; `add_parts` adds and rounds them.
// convolve_weights: grid CLUSTER * clusters, block THREADS, dynamic shared memory: sizeof(Shared).
// add_parts: grid (PIECES, tiles), block 128.
#include "implicit_gemm.cuh"

#ifndef STAGES
#define STAGES 4
#endif
#ifndef CLUSTER
#define CLUSTER 2  // blocks that share x; each has its own K
#endif
#ifndef CONSUMERS
#define CONSUMERS 2  // warp groups, 64 rows of dw each
#endif

constexpr int BM = 64 * CONSUMERS, BN = 256, BK = 64;
constexpr int BOXES = BN / BOX;
constexpr int OWN = BOXES / CLUSTER;  // boxes of x that a block fetches, for both
constexpr int SUMS = BN / 2;  // of a thread
constexpr int QUADS = SUMS / 4;
constexpr int PIECES = CLUSTER * CONSUMERS * QUADS;
constexpr int THREADS = 128 * (CONSUMERS + 1);

struct Stage {
    bf16 dy[CONSUMERS][BK][BOX];
    bf16 x[BOXES][BK][BOX];
};

struct Shared {
    Stage stage[STAGES];
    barrier full[STAGES], empty[STAGES];
};

__device__ int rank() {
    return CLUSTER == 1 ? 0 : cluster_rank();
}

// How the steps of all tiles are dealt to the clusters. A tile: CLUSTER * BM rows of dw and BN
// columns.
struct Deal {
    int across, tiles, steps;  // steps of a tile
    int clusters;

    __device__ Deal(const Problem& p, int clusters)
        : steps((p.pixels() + BK - 1) / BK), clusters(clusters) {
        int boxes = p.rows * p.columns * p.chunks();
        across = (boxes + BOXES - 1) / BOXES;
        tiles = across * ((p.outputs + CLUSTER * BM - 1) / (CLUSTER * BM));
    }
    __device__ long long all() const {
        return (long long)tiles * steps;
    }
    // The first step of a cluster, counted through all tiles.
    __device__ long long begin(int cluster) const {
        return all() * cluster / clusters;
    }
    __device__ int owner(long long step) const {
        return ((step + 1) * clusters - 1) / all();
    }
    // The most tiles that a cluster touches.
    __device__ int most() const {
        return (all() / clusters + 1) / steps + 2;
    }
    __device__ int row(int tile) const {
        return tile / across * CLUSTER * BM;
    }
    __device__ int box(int tile) const {
        return tile % across * BOXES;
    }
};

// The boxes of x that this block fetches for a tile, and the pixels that it has come to. All
// divisions are made here, once a tile: a step has only a thousand cycles.
struct Source {
    int row;  // of dw: this block's first
    int channel[OWN], right[OWN], down[OWN];
    Pixel at;  // of the result

    __device__ Source(const Problem& p, const Deal& deal, int tile, int pixel)
        : row(deal.row(tile) + rank() * BM),
          at{pixel % p.width, pixel / p.width % p.height, pixel / p.width / p.height} {
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            int box = deal.box(tile) + rank() * OWN + i;
            int tap = min(box / p.chunks(), p.rows * p.columns - 1);
            channel[i] = box % p.chunks() * BOX;
            right[i] = tap % p.columns * p.dilation;
            down[i] = tap / p.columns * p.dilation;
        }
    }
    __device__ void advance(const Problem& p) {
        at.w += BK;
        while (at.w >= p.width) {
            at.w -= p.width;
            if (++at.h == p.height) {
                at.h = 0;
                ++at.n;
            }
        }
    }
    // Asks for a step's tiles: this block's rows of dy, and for both blocks its boxes of x.
    __device__ void load(Stage& s, const TensorMap* dy, const TensorMap* x, barrier* full,
                         const Problem& p, int pixel) const {
        barrier_expect(full, sizeof(Stage));
        for (int i = 0; i < CONSUMERS; ++i)
            tma_load(s.dy[i], (const CUtensorMap*)dy, full, row + i * BOX, pixel);
        Pixel corner{at.w * p.stride + p.left, at.h * p.stride + p.top, at.n};
        bf16(*boxes)[BK][BOX] = s.x + rank() * OWN;
#pragma unroll
        for (int i = 0; i < OWN; ++i)
            if (CLUSTER == 1)
                load_pixels(boxes[i], x, full, channel[i], corner, right[i], down[i]);
            else
                load_pixels_to_both(boxes[i], x, full, channel[i], corner, right[i], down[i]);
    }
};

__device__ void produce(Shared& s, const TensorMap* dy, const TensorMap* x, const Problem& p,
                        const Deal& deal, int cluster) {
    Slot<STAGES> slot;
    long long i = deal.begin(cluster);
    long long end = deal.begin(cluster + 1);
    while (i < end) {
        int tile = i / deal.steps;
        int step = i - (long long)tile * deal.steps;
        int last = min((long long)deal.steps, step + end - i);
        i += last - step;
        Source source(p, deal, tile, step * BK);
        for (; step < last; ++step) {
            barrier_wait(&s.empty[slot.i], slot.parity ^ 1);  // free, in both blocks
            source.load(s.stage[slot.i], dy, x, &s.full[slot.i], p, step * BK);
            source.advance(p);
            slot.next();
        }
    }
}

// Queues d (+)= dy^T x for this warp group's 64 rows. Both tiles have a row a pixel.
__device__ void multiply(float (&d)[SUMS], const Stage& s, int warpgroup, bool add) {
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
        descriptor a = tile_for_wgmma(s.dy[warpgroup][k], 0);
        descriptor b = tile_for_wgmma(s.x[0][k], sizeof s.x[0]);
        wgmma<1, 1>(d, a, b, add || k > 0);
    }
    wgmma_close_group();
}

__device__ void give_back(Shared& s, int slot) {
    int thread = threadIdx.x % 128;
    if (thread < CLUSTER)
        barrier_arrive_at(&s.empty[slot], thread);
}

// Where the sums of a cluster's part of a tile begin, in quads of four.
__device__ size_t part(const Deal& deal, int cluster, int tile) {
    int first = deal.begin(cluster) / deal.steps;
    return ((size_t)cluster * deal.most() + tile - first) * PIECES * 128;
}

__device__ void consume(Shared& s, float4* parts, const Deal& deal, int cluster, int warpgroup) {
    Slot<STAGES> slot;
    float d[SUMS];
    long long i = deal.begin(cluster);
    long long end = deal.begin(cluster + 1);
    while (i < end) {
        int tile = i / deal.steps;
        long long tile_end = min(end, (tile + 1ll) * deal.steps);
        int before = -1;
        for (; i < tile_end; ++i) {
            barrier_wait(&s.full[slot.i], slot.parity);
            multiply(d, s.stage[slot.i], warpgroup, before >= 0);
            wgmma_wait<1>();
            if (before >= 0)
                give_back(s, before);
            before = slot.i;
            slot.next();
        }
        wgmma_wait<0>();
        give_back(s, before);
        int piece = (rank() * CONSUMERS + warpgroup) * QUADS;
        float4* to = parts + part(deal, cluster, tile) + piece * 128 + threadIdx.x % 128;
#pragma unroll
        for (int q = 0; q < QUADS; ++q)
            to[q * 128] = make_float4(d[q * 4], d[q * 4 + 1], d[q * 4 + 2], d[q * 4 + 3]);
    }
}

#define LAUNCHED_AS __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1)
__global__ LAUNCHED_AS void convolve_weights(float4* parts, const __grid_constant__ TensorMap dy,
                                             const __grid_constant__ TensorMap x, const Problem p) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&s.full[i], 1);
            barrier_init(&s.empty[i], CONSUMERS * CLUSTER);
        }
        barriers_ready();
    }
    cluster_sync();
    Deal deal(p, gridDim.x / CLUSTER);
    int cluster = blockIdx.x / CLUSTER;
    int warpgroup = threadIdx.x / 128;
    if (warpgroup == CONSUMERS) {
        if (CONSUMERS > 1)
            keep_40_registers();
        if (threadIdx.x % 128 == 0)
            produce(s, &dy, &x, p, deal, cluster);
    } else {
        if (CONSUMERS > 1)
            take_232_registers();
        consume(s, parts, deal, cluster, warpgroup);
    }
    cluster_sync();  // a block must not end while the other still copies into it
}

__device__ void add(float4& sum, float4 more) {
    sum.x += more.x;
    sum.y += more.y;
    sum.z += more.z;
    sum.w += more.w;
}

// dw: K, R, S, C.
__global__ __launch_bounds__(128) void add_parts(bf16* dw, const float4* parts, const Problem p,
                                                 int clusters) {
    Deal deal(p, clusters);
    int tile = blockIdx.y;
    int first = deal.owner((long long)tile * deal.steps);
    int last = deal.owner((tile + 1ll) * deal.steps - 1);
    float4 sum = make_float4(0, 0, 0, 0);
    for (int cluster = first; cluster <= last; ++cluster)
        add(sum, parts[part(deal, cluster, tile) + blockIdx.x * 128 + threadIdx.x]);
    int column = blockIdx.x % QUADS * 8 + threadIdx.x % 4 * 2;
    int box = deal.box(tile) + column / BOX;
    int tap = box / p.chunks();
    int channel = box % p.chunks() * BOX + column % BOX;
    int row = deal.row(tile) + blockIdx.x / QUADS * 64 + threadIdx.x / 32 * 16;
    row += threadIdx.x % 32 / 4;
    if (tap >= p.rows * p.columns || channel >= p.channels)
        return;
    size_t width = (size_t)p.rows * p.columns * p.channels;
    bf16* to = dw + row * width + (size_t)tap * p.channels + channel;
    const float* two = &sum.x;
    if (row < p.outputs)
        *(unsigned*)to = packed(two);
    if (row + 8 < p.outputs)
        *(unsigned*)(to + 8 * width) = packed(two + 2);
}
