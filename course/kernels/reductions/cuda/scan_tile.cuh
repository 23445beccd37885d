// A tile of a scan in a block's registers: load it, scan it, store it.
//
// Each warp holds one piece of the tile in ROWS rows. A row is 128 neighbours, four a lane, so that
// a warp reads and writes 512 bytes at once.
#pragma once
#include "scan_words.cuh"

template <typename T, int THREADS, int ROWS>
struct Tile {
    static constexpr int WARPS = THREADS / WARP;
    static constexpr int ITEMS = THREADS * ROWS * 4;

    Four<T> row[ROWS];

    // Where this thread's four items of a row lie in the tile.
    __device__ static int place(int row) {
        const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
        return (warp * ROWS + row) * WARP * 4 + lane * 4;
    }

    // `items` of the tile exist; the rest are zeros. A whole tile begins at a multiple of 16 bytes.
    __device__ void load(const T* tile, int items) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int i = place(r);
            if (items == ITEMS) {
                row[r] = *reinterpret_cast<const Four<T>*>(tile + i);
            } else {
                row[r].x = i + 0 < items ? tile[i + 0] : T(0);
                row[r].y = i + 1 < items ? tile[i + 1] : T(0);
                row[r].z = i + 2 < items ? tile[i + 2] : T(0);
                row[r].w = i + 3 < items ? tile[i + 3] : T(0);
            }
        }
    }

    // Each item becomes the sum from the beginning of its warp's piece. Gives the piece's sum.
    __device__ T scan_piece() {
        const int lane = threadIdx.x % WARP;
        T before = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            row[r].y += row[r].x;
            row[r].z += row[r].y;
            row[r].w += row[r].z;
            const T through = warp_scan(row[r].w, lane);
            T left = __shfl_up_sync(EVERYONE, through, 1);
            left = lane > 0 ? before + left : before;
            add_to_row(r, left);
            before += __shfl_sync(EVERYONE, through, WARP - 1);
        }
        return before;
    }

    __device__ void add(T value) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            add_to_row(r, value);
    }

    __device__ void add_to_row(int r, T value) {
        row[r].x += value;
        row[r].y += value;
        row[r].z += value;
        row[r].w += value;
    }

    __device__ void store(T* tile, int items) const {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int i = place(r);
            if (items == ITEMS) {
                *reinterpret_cast<Four<T>*>(tile + i) = row[r];
            } else {
                if (i + 0 < items)
                    tile[i + 0] = row[r].x;
                if (i + 1 < items)
                    tile[i + 1] = row[r].y;
                if (i + 2 < items)
                    tile[i + 2] = row[r].z;
                if (i + 3 < items)
                    tile[i + 3] = row[r].w;
            }
        }
    }
};
