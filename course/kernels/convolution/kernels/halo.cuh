// What the kernels share that fetch a patch of the picture once, with its halo, and use it for all
// taps. A patch has `pitch` pixels a row: the result's, and those that the filter reaches beyond.
// Counted along the patch, pixel after pixel, a tap is the same patch, read a few pixels later; the
// last pixels of each row are computed for nothing.
#pragma once
#include "implicit_gemm.cuh"

// Patches: `height` rows of the result each, full width.
struct Patches {
    int height, pitch, down, count;

    __device__ Patches(const Problem& p, int height)
        : height(height),
          pitch(p.width + p.columns - 1),
          down((p.height + height - 1) / height),
          count(down * p.images) {}
    // The result's pixel that a patch begins with.
    __device__ Pixel at(int i) const {
        return {0, i % down * height, i / down};
    }
    __device__ Pixel input(int i, const Problem& p) const {
        Pixel from = at(i);
        return {p.left, from.h + p.top, from.n};
    }
};
