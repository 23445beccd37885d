// Depthwise convolution, NHWC bfloat16, stride 1, as large as the picture ("same"): each channel
// has a filter of its own. A thread has two channels and WIDE columns, and walks down the picture:
// each row that it loads counts for SIDE rows of the result, whose sums it keeps in registers.
// c: even. weights: SIDE, SIDE, c. height: rows of the result a thread.
#include <cuda_bf16.h>

#ifndef SIDE
#define SIDE 3
#endif
#ifndef WIDE
#define WIDE 4
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif

using bf16 = __nv_bfloat16;

constexpr int HALF = SIDE / 2;
constexpr int SPAN = WIDE + SIDE - 1;  // columns that a thread reads
constexpr int THREADS = 128;

// A bfloat16 is the upper half of a float.
__device__ float first(unsigned two) {
    return __uint_as_float(two << 16);
}
__device__ float second(unsigned two) {
    return __uint_as_float(two & 0xffff0000);
}

struct Picture {
    const unsigned* data;  // at this thread's channels
    int h, w, pitch;

    __device__ void load_row(unsigned (&row)[SPAN], int y, int left) const {
#pragma unroll
        for (int i = 0; i < SPAN; ++i) {
            int x = left + i;
            bool inside = y >= 0 && y < h && x >= 0 && x < w;
            row[i] = inside ? data[(size_t)(y * w + x) * pitch] : 0;
        }
    }
};

struct Sums {
    float at[SIDE][WIDE][2] = {};

    // Adds a row of the picture to one row of the result.
    __device__ void add(int row, const unsigned (&weights)[SIDE], const unsigned (&from)[SPAN]) {
#pragma unroll
        for (int s = 0; s < SIDE; ++s) {
#pragma unroll
            for (int i = 0; i < WIDE; ++i) {
                at[row][i][0] += first(weights[s]) * first(from[i + s]);
                at[row][i][1] += second(weights[s]) * second(from[i + s]);
            }
        }
    }
    // The upper row is finished: all move up.
    __device__ void move_up() {
#pragma unroll
        for (int row = 0; row < SIDE; ++row)
            for (int i = 0; i < WIDE; ++i)
                for (int j = 0; j < 2; ++j)
                    at[row][i][j] = row + 1 < SIDE ? at[row + 1][i][j] : 0;
    }
    __device__ unsigned rounded(int i) const {
        __nv_bfloat162 both = __floats2bfloat162_rn(at[0][i][0], at[0][i][1]);
        return *(unsigned*)&both;
    }
};

__global__ __launch_bounds__(THREADS, BLOCKS) void depthwise(bf16* y, const bf16* x,
                                                             const bf16* weights, int n, int h,
                                                             int w, int c, int height) {
    int pitch = c / 2;
    int across = (w + WIDE - 1) / WIDE;
    int down = (h + height - 1) / height;
    long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    int pair = i % pitch;
    int left = i / pitch % across * WIDE;
    int top = i / pitch / across % down * height;
    int image = i / pitch / across / down;
    if (image >= n)
        return;
    unsigned taps[SIDE][SIDE];
    for (int r = 0; r < SIDE; ++r)
        for (int s = 0; s < SIDE; ++s)
            taps[r][s] = ((const unsigned*)weights)[(r * SIDE + s) * pitch + pair];
    size_t start = (size_t)image * h * w * pitch + pair;
    Picture picture{(const unsigned*)x + start, h, w, pitch};
    unsigned* out = (unsigned*)y + start;
    int bottom = min(top + height, h);
    Sums sums;
    unsigned now[SPAN], next[SPAN];
    picture.load_row(next, top - HALF, left - HALF);
    for (int row = top - HALF; row < bottom + HALF; ++row) {
#pragma unroll
        for (int k = 0; k < SPAN; ++k)
            now[k] = next[k];
        picture.load_row(next, row + 1, left - HALF);
#pragma unroll
        for (int k = 0; k < SIDE; ++k) {
            int result = row - HALF + k;
            if (result >= top && result < bottom)
                sums.add(k, taps[SIDE - 1 - k], now);
        }
        int result = row - HALF;
        for (int k = 0; k < WIDE; ++k)
            if (result >= top && left + k < w)
                out[(size_t)(result * w + left + k) * pitch] = sums.rounded(k);
        sums.move_up();
    }
}
