// Convolution with 64 channels in and 64 out, stride 1: too few for a tile of the matrix product,
// so cuts of pixels are the wide side. result^T (64 x pixels) = weights (64 x 64) times patch^T,
// summed over the taps. All weights stay in shared memory, a patch is fetched once, not once a
// tap. TURNED 1: the data gradient; x is dy, taps count backwards.
// Grid: as many blocks as SMs, block: 384, dynamic shared memory: sizeof(Shared).
#include "halo.cuh"

#ifndef TURNED
#define TURNED 0
#endif
#ifndef TAPS
#define TAPS 9
#endif
#ifndef IN_TURN
#define IN_TURN 1  // the two warp groups multiply in turn: one stores while the other multiplies
#endif
#ifndef SLOTS
#define SLOTS 3
#endif

constexpr int PIXELS = 232;  // of a patch's result, those computed for nothing among them
constexpr int SUMS = PIXELS / 2;
constexpr int SLOT = 352;  // pixels that a slot has room for

struct Shared {
    bf16 weights[TAPS][64][BOX];
    bf16 patch[SLOTS][SLOT][BOX];
    barrier full[SLOTS], empty[SLOTS], weights_here;
    barrier done[2];  // a warp group has (nearly) finished its products
};

__device__ void produce(Shared& s, const TensorMap* x, const TensorMap* w, const Problem& p,
                        const Patches& patches) {
    barrier_expect(&s.weights_here, sizeof s.weights);
    for (int tap = 0; tap < TAPS; ++tap)
        load_box(s.weights[tap], w, &s.weights_here, 0, TURNED ? TAPS - 1 - tap : tap, 0);
    Slot<SLOTS> slot;
    int bytes = (patches.height + p.rows - 1) * patches.pitch * sizeof s.patch[0][0];
    for (int i = blockIdx.x; i < patches.count; i += gridDim.x) {
        barrier_wait(&s.empty[slot.i], slot.parity ^ 1);
        barrier_expect(&s.full[slot.i], bytes);
        load_patch(s.patch[slot.i], x, &s.full[slot.i], 0, patches.input(i, p));
        slot.next();
    }
}

// Queues all products of a patch.
__device__ void multiply(float (&d)[SUMS], Shared& s, const bf16 (*patch)[BOX], const Problem& p,
                         int pitch) {
    wgmma_begin();
#pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
        const bf16(*view)[BOX] = patch + tap / p.columns * pitch + tap % p.columns;
#pragma unroll
        for (int k = 0; k < BOX; k += 16) {
            descriptor a = tile_for_wgmma(&s.weights[tap][0][k], 0);
            if (TURNED)
                a = tile_for_wgmma(&s.weights[tap][k][0], 0);
            descriptor b = tile_for_wgmma(&view[0][k], 0);
            wgmma<TURNED, 0>(d, a, b, tap + k > 0);
        }
        if (tap >= TAPS - 2)
            wgmma_close_group();  // the last tap is a group of its own
    }
}

// Rounds and turns the sums into swizzled rows, a pixel each, over the patch that nobody needs any
// more. What was computed for nothing goes behind the others.
__device__ void fill_patch(bf16 (*to)[BOX], const float (&d)[SUMS], int height, int width,
                           int pitch) {
    int lane = threadIdx.x % 32;
    int matrix = lane / 8;
    int piece = threadIdx.x % 128 / 32 * 2 + matrix % 2;  // 8 channels
#pragma unroll
    for (int j = 0; j < SUMS / 4; j += 2) {  // groups of 8 pixels, two at a time
        unsigned r[4] = {};
        for (int i = 0; i < 4; ++i)
            if (j * 4 + i * 2 < SUMS)
                r[i] = packed(d + j * 4 + i * 2);
        int pixel = (j + matrix / 2) * 8 + lane % 8;
        int y = pixel / pitch;
        int x = pixel % pitch;
        int row = height * width + lane % 8;
        if (x < width && y < height)
            row = y * width + x;
        store_matrices_transposed(&to[row][(piece ^ row % 8) * 8], r);
    }
}

__device__ void consume(Shared& s, const TensorMap* y, const Problem& p, const Patches& patches,
                        int warpgroup) {
    Slot<SLOTS> slot;
    bool first = threadIdx.x % 128 == 0;
    barrier_wait(&s.weights_here, 0);
    int count = 0;
    for (int i = blockIdx.x; i < patches.count; i += gridDim.x, slot.next(), ++count) {
        if (count % 2 != warpgroup)
            continue;  // the two warp groups take patches in turn
        float d[SUMS];
        bf16(*patch)[BOX] = s.patch[slot.i];
        barrier_wait(&s.full[slot.i], slot.parity);
        if (IN_TURN)
            barrier_wait(&s.done[1 - warpgroup], (count / 2 + 1 + warpgroup) % 2);
        multiply(d, s, patch, p, patches.pitch);
        wgmma_wait<1>();
        if (first)
            barrier_arrive(&s.done[warpgroup]);
        wgmma_wait<0>();
        meet_warpgroup(warpgroup + 1);  // all four warps' products are done
        fill_patch(patch, d, patches.height, p.width, patches.pitch);
        show_to_copy_engine();
        meet_warpgroup(warpgroup + 1);
        if (first) {
            store_patch(y, patch, 0, patches.at(i));
            close_stores();
            stores_have_read();
            barrier_arrive(&s.empty[slot.i]);
        }
    }
    if (first)
        stores_have_arrived();
}

__global__ __launch_bounds__(384, 1) void convolve(const __grid_constant__ TensorMap y,
                                                   const __grid_constant__ TensorMap x,
                                                   const __grid_constant__ TensorMap w,
                                                   const Problem p, int height) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    if (threadIdx.x == 0) {
        barrier_init(&s.weights_here, 1);
        barrier_init(&s.done[0], 1);
        barrier_init(&s.done[1], 1);
        for (int i = 0; i < SLOTS; ++i) {
            barrier_init(&s.full[i], 1);
            barrier_init(&s.empty[i], 1);
        }
        barriers_ready();
    }
    __syncthreads();
    Patches patches(p, height);
    int warpgroup = threadIdx.x / 128;
    if (warpgroup == 2) {
        keep_40_registers();
        if (threadIdx.x % 128 == 0)
            produce(s, &x, &w, p, patches);
    } else {
        take_232_registers();
        consume(s, &y, p, patches, warpgroup);
    }
}
