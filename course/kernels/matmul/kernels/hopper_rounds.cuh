// What the kernels share whose blocks stay: which tile comes next, and where in the ring.
#pragma once
#include "hopper_instructions.cuh"

// The tiles of C, each BLOCKS * ROWS rows high and COLUMNS wide, in groups of PATCH rows of tiles.
// Of a tile of a cluster's, block 0 takes the upper ROWS rows and block 1 the lower.
template <int ROWS, int COLUMNS, int BLOCKS, int PATCH>
struct TilesOf {
    int down, across;

    __device__ TilesOf(int m, int n)
        : down((m + BLOCKS * ROWS - 1) / (BLOCKS * ROWS)), across((n + COLUMNS - 1) / COLUMNS) {}
    __device__ int count() const {
        return down * across;
    }
    __device__ int first_row(int t) const {
        return t / (PATCH * across) * PATCH;
    }
    __device__ int height(int t) const {
        return min(PATCH, down - first_row(t));
    }
    __device__ int row(int t) const {
        int tile_row = first_row(t) + t % (PATCH * across) % height(t);
        return (tile_row * BLOCKS + (BLOCKS == 1 ? 0 : cluster_rank())) * ROWS;
    }
    __device__ int column(int t) const {
        return t % (PATCH * across) / height(t) * COLUMNS;
    }
};

// A place in the ring of stages. parity: of the round, as its barriers count them.
template <int PLACES>
struct SlotOf {
    int i = 0, parity = 0;

    __device__ void next() {
        if (++i == PLACES) {
            i = 0;
            parity ^= 1;
        }
    }
    __device__ void skip(int steps) {
        parity ^= (i + steps) / PLACES & 1;
        i = (i + steps) % PLACES;
    }
};
