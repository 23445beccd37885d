// Depthwise convolution as in depthwise.cu, on Hopper: the copy engine brings whole rows of the
// picture into a ring in shared memory, with zeros beyond the left and right edges, so that memory
// never waits for arithmetic. A block has 64 channels and COLUMNS columns of a picture and walks
// down; each of its warps has WIDE columns, a lane two channels.
// c: multiple of 8. Grid: any, block: THREADS, dynamic shared memory: sizeof(Shared).
#include "implicit_gemm.cuh"

#ifndef SIDE
#define SIDE 3
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef STAGES
#define STAGES 6
#endif

#ifndef WIDE
#define WIDE 7
#define WARPS 8
#endif

constexpr int COLUMNS = WIDE * WARPS;
constexpr int HALF = SIDE / 2;
constexpr int SPAN = WIDE + SIDE - 1;  // columns that a warp reads
// Rows of a stage. Three rows that are unrolled bring three rows of sums back to where they were:
// nothing has to be moved.
constexpr int ROWS = SIDE == 3 ? 3 : 2;
constexpr int UNROLLED = SIDE == 3 ? ROWS : 1;
constexpr int THREADS = 32 * WARPS;

struct Stage {
    unsigned pixels[ROWS][COLUMNS + SIDE - 1][32];
};

struct Shared {
    Stage stage[STAGES];
    barrier full[STAGES], empty[STAGES];
};

struct Picture {
    int n, h, w, c;

    __device__ int groups() const {
        return (c + 63) / 64;
    }
    __device__ int strips() const {
        return (w + COLUMNS - 1) / COLUMNS;
    }
    __device__ int items() const {
        return n * strips() * groups();
    }
};

// What a block walks down: a strip of one picture, for 64 channels.
struct Item {
    int channel, left, image;

    __device__ Item(const Picture& p, int i)
        : channel(i % p.groups() * 64),
          left(i / p.groups() % p.strips() * COLUMNS),
          image(i / p.groups() / p.strips()) {}
};

// Who asks for rows, stage after stage: one lane of the block. (A warp for this alone would cost
// the others a third of their registers: they are dealt out to four warps at a time.)
struct Feeder {
    Slot<STAGES> slot;
    int item = blockIdx.x, y = 0;

    __device__ void feed(Shared& s, const TensorMap* x, const Picture& p) {
        if (item >= p.items())
            return;
        Item its(p, item);
        barrier_wait(&s.empty[slot.i], slot.parity ^ 1);
        barrier_expect(&s.full[slot.i], sizeof(Stage));
        Pixel at{its.left - HALF, y, its.image};
        load_patch(&s.stage[slot.i], x, &s.full[slot.i], its.channel, at);
        slot.next();
        y += ROWS;
        if (y < p.h + HALF)
            return;
        y = 0;
        item += gridDim.x;
    }
};

// A bfloat16 is the upper half of a float.
__device__ float2 unpacked(unsigned two) {
    return make_float2(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000));
}

struct Sums {
    float2 at[SIDE][WIDE];  // rows of the result that are under way

    __device__ void clear() {
#pragma unroll
        for (int k = 0; k < SIDE; ++k)
#pragma unroll
            for (int i = 0; i < WIDE; ++i)
                at[k][i] = make_float2(0, 0);
    }
    // A row of the picture counts for SIDE rows of the result.
    __device__ void add(const float2 (&taps)[SIDE][SIDE], const float2 (&row)[SPAN]) {
#pragma unroll
        for (int k = 0; k < SIDE; ++k)
#pragma unroll
            for (int s = 0; s < SIDE; ++s)
#pragma unroll
                for (int i = 0; i < WIDE; ++i) {
                    float2 tap = taps[SIDE - 1 - k][s];
                    at[k][i].x += tap.x * row[i + s].x;
                    at[k][i].y += tap.y * row[i + s].y;
                }
    }
    // The upper row is finished: all move up.
    __device__ void move_up() {
#pragma unroll
        for (int k = 0; k < SIDE; ++k)
#pragma unroll
            for (int i = 0; i < WIDE; ++i)
                at[k][i] = k + 1 < SIDE ? at[k + 1][i] : make_float2(0, 0);
    }
};

// Where a lane writes: its two channels of its first column in the next row.
struct Result {
    unsigned* data;
    int width, pitch;  // of a row, in columns; of a column, in words
    int columns;  // this warp's; 0 where the lane has no channels

    __device__ void write(const float2 (&sums)[WIDE]) {
#pragma unroll
        for (int i = 0; i < WIDE; ++i)
            if (i < columns)
                data[i * pitch] = packed(&sums[i].x);
        data += (size_t)width * pitch;
    }
};

// Walks down one strip: reads the rows of a stage, and writes those that are finished. Below the
// picture come rows of zeros, until the last results are out.
__device__ void walk(Shared& s, Slot<STAGES>& slot, Sums& sums, const float2 (&taps)[SIDE][SIDE],
                     Result& result, int top, int height) {
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    barrier_wait(&s.full[slot.i], slot.parity);
#pragma unroll UNROLLED
    for (int r = 0; r < ROWS; ++r) {
        float2 row[SPAN];
#pragma unroll
        for (int k = 0; k < SPAN; ++k)
            row[k] = unpacked(s.stage[slot.i].pixels[r][warp * WIDE + k][lane]);
        sums.add(taps, row);
        int done = top + r - HALF;
        if (done >= 0 && done < height)
            result.write(sums.at[0]);
        sums.move_up();
    }
    __syncwarp();
    if (lane == 0)
        barrier_arrive(&s.empty[slot.i]);
    slot.next();
}

__device__ void consume(Shared& s, const TensorMap* x, bf16* y, const bf16* weights,
                        const Picture& p) {
    int pitch = p.c / 2;
    Slot<STAGES> slot;
    Feeder feeder;
    bool feeds = threadIdx.x == 0;
    for (int i = 0; feeds && i < STAGES - 1; ++i)
        feeder.feed(s, x, p);
    __syncwarp();
    Sums sums;
    for (int i = blockIdx.x; i < p.items(); i += gridDim.x) {
        Item item(p, i);
        int pair = item.channel / 2 + threadIdx.x % 32;
        int column = item.left + threadIdx.x / 32 * WIDE;
        bool has_channels = pair < pitch;
        size_t start = ((size_t)item.image * p.h * p.w + column) * pitch + pair;
        Result result{(unsigned*)y + start, p.w, pitch, has_channels ? p.w - column : 0};
        float2 taps[SIDE][SIDE];
#pragma unroll
        for (int t = 0; t < SIDE * SIDE; ++t)
            taps[t / SIDE][t % SIDE] =
                unpacked(has_channels ? ((const unsigned*)weights)[t * pitch + pair] : 0);
        sums.clear();
        for (int top = 0; top < p.h + HALF; top += ROWS) {
            if (feeds)
                feeder.feed(s, x, p);  // where the stage before was
            __syncwarp();
            walk(s, slot, sums, taps, result, top, p.h);
        }
    }
}

__global__ __launch_bounds__(THREADS, BLOCKS) void depthwise(bf16* y,
                                                             const __grid_constant__ TensorMap x,
                                                             const bf16* weights, const Picture p) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&s.full[i], 1);
            barrier_init(&s.empty[i], WARPS);
        }
        barriers_ready();
    }
    __syncthreads();
    consume(s, &x, y, weights, p);
}
