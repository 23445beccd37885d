// The weights' gradient with 64 channels in and 64 out, a filter of 3 x 3, stride 1: each block
// computes all of dw (64 x 576) for its share of the pixels. A warp group has one row of the
// filter: three taps, side by side in one wgmma, whose tiles of x begin one pixel after another.
// dy is fetched with zeros where a patch's row is wider than the result.
// convolve_weights: grid: blocks <= patches, block: 512, dynamic shared memory: sizeof(Shared).
// add_parts: grid 288, block 256.
#include "halo.cuh"

constexpr int SIDE = 3;  // of the filter
constexpr int PIXELS = 240;  // of a patch's result: 15 steps of 16, the last ones zero
constexpr int INPUTS = 360;  // of x: 240 and two rows of 58 and two pixels, at most
constexpr int SUMS = SIDE * 64 / 2;
constexpr int QUADS = SUMS / 4;
constexpr int ALL = SIDE * QUADS * 128;  // quads of dw
constexpr int STAGES = 3;

struct Stage {
    bf16 dy[PIXELS][BOX];
    bf16 x[INPUTS][BOX];
};

struct Shared {
    Stage stage[STAGES];
    barrier full[STAGES], empty[STAGES];
};

__device__ void produce(Shared& s, const TensorMap* dy, const TensorMap* x, const Problem& p,
                        const Patches& patches) {
    Slot<STAGES> slot;
    int pixels = (2 * patches.height + SIDE - 1) * patches.pitch;  // of dy and of x
    for (int i = blockIdx.x; i < patches.count; i += gridDim.x) {
        Stage& stage = s.stage[slot.i];
        barrier* full = &s.full[slot.i];
        barrier_wait(&s.empty[slot.i], slot.parity ^ 1);
        barrier_expect(full, pixels * sizeof stage.x[0]);
        load_patch(stage.dy, dy, full, 0, patches.at(i));
        load_patch(stage.x, x, full, 0, patches.input(i, p));
        slot.next();
    }
}

// Queues d (+)= dy^T x for the three taps of a row of the filter.
__device__ void multiply(float (&d)[SUMS], const Stage& s, int first_pixel, bool add) {
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < PIXELS; k += 16) {
        descriptor a = tile_for_wgmma(s.dy[k], 0);
        descriptor b = tile_for_wgmma(s.x[first_pixel + k], sizeof s.x[0]);
        wgmma<1, 1>(d, a, b, add || k > 0);
    }
    wgmma_close_group();
}

__device__ void consume(Shared& s, float4* parts, const Patches& patches, int row) {
    Slot<STAGES> slot;
    float d[SUMS];
    int before = -1;
    for (int i = blockIdx.x; i < patches.count; i += gridDim.x) {
        barrier_wait(&s.full[slot.i], slot.parity);
        multiply(d, s.stage[slot.i], row * patches.pitch, before >= 0);
        wgmma_wait<1>();
        if (before >= 0 && threadIdx.x % 128 == 0)
            barrier_arrive(&s.empty[before]);
        before = slot.i;
        slot.next();
    }
    wgmma_wait<0>();
    float4* to = parts + (size_t)blockIdx.x * ALL + row * QUADS * 128 + threadIdx.x % 128;
#pragma unroll
    for (int q = 0; q < QUADS; ++q)
        to[q * 128] = make_float4(d[q * 4], d[q * 4 + 1], d[q * 4 + 2], d[q * 4 + 3]);
}

__global__ __launch_bounds__(512, 1) void convolve_weights(float4* parts,
                                                           const __grid_constant__ TensorMap dy,
                                                           const __grid_constant__ TensorMap x,
                                                           const Problem p, int height) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    // What no copy fills is multiplied by zeros of dy, or is one: neither may hold a NaN.
    for (int i = threadIdx.x; i < sizeof s.stage / sizeof(uint4); i += blockDim.x)
        ((uint4*)s.stage)[i] = make_uint4(0, 0, 0, 0);
    show_to_copy_engine();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&s.full[i], 1);
            barrier_init(&s.empty[i], SIDE);
        }
        barriers_ready();
    }
    __syncthreads();
    Patches patches(p, height);
    int warpgroup = threadIdx.x / 128;
    if (warpgroup < SIDE)
        consume(s, parts, patches, warpgroup);
    else if (threadIdx.x % 128 == 0)
        produce(s, &dy, &x, p, patches);
}

// dw: K, 3, 3, C. A block adds 32 quads: 8 warps take every eighth part, then warp 0 adds theirs.
__global__ __launch_bounds__(256) void add_parts(bf16* dw, const float4* parts, int count) {
    __shared__ float4 sums[8][32];
    int lane = threadIdx.x % 32;
    int quad = blockIdx.x * 32 + lane;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = threadIdx.x / 32; i < count; i += 8) {
        float4 more = parts[(size_t)i * ALL + quad];
        sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
    }
    sums[threadIdx.x / 32][lane] = sum;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    for (int i = 1; i < 8; ++i) {
        float4 more = sums[i][lane];
        sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
    }
    int thread = quad % 128;
    int group = quad / 128;  // of eight columns: row of the filter, tap in it, channels
    int k = thread / 32 * 16 + thread % 32 / 4;
    int column = group * 8 + thread % 4 * 2;
    bf16* to = dw + k * SIDE * SIDE * 64 + column;
    *(unsigned*)to = packed(&sum.x);
    *(unsigned*)(to + 8 * SIDE * SIDE * 64) = packed(&sum.z);
}
