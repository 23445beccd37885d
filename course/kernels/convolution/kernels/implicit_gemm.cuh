// What the implicit matrix products on Hopper share: the sizes, the ring of stages, the tile's way
// out through shared memory.
#pragma once
#include "instructions.cuh"

constexpr int BOX = 64;  // channels of a box: 128 bytes, the most that a swizzled row can hold

// A convolution as the kernel computes it: for each pixel of the result, `rows` x `columns` taps.
struct Problem {
    int images, height, width;  // of the result
    int channels, outputs;  // summed over; computed
    int rows, columns;  // of the filter
    int stride, dilation;
    int top, left;  // of the pixel that the filter's first tap meets at the result's first pixel

    __device__ int pixels() const {
        return images * height * width;
    }
    __device__ int chunks() const {
        return (channels + BOX - 1) / BOX;
    }
    // Where the filter's first tap lies for pixel i of the result.
    __device__ Pixel corner(int i) const {
        int y = i / width;
        return {i % width * stride + left, y % height * stride + top, y / height};
    }
};

// A place in a ring of stages. parity: of the round, as its barriers count them.
template <int DEPTH>
struct Slot {
    int i = 0, parity = 0;

    __device__ void next() {
        if (++i == DEPTH) {
            i = 0;
            parity ^= 1;
        }
    }
};

// Two neighbours among a thread's sums, as bf16 in one register.
__device__ unsigned packed(const float* two) {
    __nv_bfloat162 both = __floats2bfloat162_rn(two[0], two[1]);
    return *(unsigned*)&both;
}

__device__ void stores_have_read_but_one() {
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
}

// Rounds a warp group's 64 x 64 sums, eight columns to every four of d, into a swizzled box.
__device__ void fill_box(bf16 (&box)[64][BOX], const float* d) {
    int thread = threadIdx.x % 128;
    int matrix = thread % 32 / 8;  // of the four 8 x 8 matrices that a warp stores at a time
    int y = thread / 32 * 16 + matrix % 2 * 8 + thread % 8;
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
        unsigned r[4];
        for (int i = 0; i < 4; ++i)
            r[i] = packed(d + j * 4 + i * 2);
        int piece = (j + matrix / 2) ^ (y % 8);  // swizzled, as the map says
        store_matrices(&box[y][piece * 8], r);
    }
}

// Writes a warp group's 64 x 2 SUMS tile at (row, column), a box after the other; two buffers.
template <int SUMS>
__device__ void store_tile(const TensorMap* map, bf16 (&boxes)[2][64][BOX], const float (&d)[SUMS],
                           int row, int column) {
    int meeting = threadIdx.x / 128 + 1;
    bool first = threadIdx.x % 128 == 0;
#pragma unroll
    for (int i = 0; i < SUMS / 32; ++i) {
        if (first && SUMS > 32)
            stores_have_read_but_one();
        else if (first)
            stores_have_read();  // one box a tile: the tile before used the same buffer
        meet_warpgroup(meeting);
        fill_box(boxes[i % 2], d + i * 32);
        show_to_copy_engine();
        meet_warpgroup(meeting);
        if (first) {
            store_box(map, boxes[i % 2], column + i * BOX, row);
            close_stores();
        }
    }
}
