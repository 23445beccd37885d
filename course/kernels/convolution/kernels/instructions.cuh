// What convolutions ask of Hopper besides matmul's instructions: boxes of tensors with three and
// four dimensions, and the copy engine's im2col mode. Source: PTX ISA, "cp.async.bulk.tensor".
#pragma once
#include "wgmma_shapes.cuh"

// Made by the host (convolution/tensor_maps.py); as CUtensorMap, but passed as a plain struct.
struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

struct Pixel {
    int w, h, n;
};

// im2col: pixels from `at` on, along w, then h, then n, as far as the map's bounding box reaches,
// each moved by (right, down). What lies outside of the picture arrives as zeros.
__device__ void load_pixels(void* to, const TensorMap* map, barrier* b, int channel, Pixel at,
                            int right, int down) {
    unsigned short offset_w = right;
    unsigned short offset_h = down;
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(channel), "r"(at.w), "r"(at.h), "r"(at.n),
        "h"(offset_w), "h"(offset_h)
        : "memory");
}

// The same for both blocks of a cluster.
__device__ void load_pixels_to_both(void* to, const TensorMap* map, barrier* b, int channel,
                                    Pixel at, int right, int down) {
    unsigned short offset_w = right;
    unsigned short offset_h = down;
    unsigned short blocks = 0b11;
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(
            shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(channel), "r"(at.w), "r"(at.h), "r"(at.n),
        "h"(offset_w), "h"(offset_h), "h"(blocks)
        : "memory");
}

// A box of a tensor with three dimensions, x innermost.
__device__ void load_box(void* to, const TensorMap* map, barrier* b, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z)
        : "memory");
}

__device__ void load_box_to_both(void* to, const TensorMap* map, barrier* b, int x, int y, int z) {
    unsigned short blocks = 0b11;
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
}

// A box of whole pixels: channels, then w, h, n.
__device__ void load_patch(void* to, const TensorMap* map, barrier* b, int channel, Pixel at) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(b)), "r"(channel), "r"(at.w), "r"(at.h), "r"(at.n)
        : "memory");
}

__device__ void store_patch(const TensorMap* map, const void* from, int channel, Pixel at) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
            map),
        "r"(shared_address(from)), "r"(channel), "r"(at.w), "r"(at.h), "r"(at.n)
        : "memory");
}

__device__ void store_box(const TensorMap* map, const void* from, int column, int row) {
    tma_store((const CUtensorMap*)map, from, column, row);
}

// Four matrices of 8 x 8 numbers a warp, each transposed on its way to shared memory.
__device__ void store_matrices_transposed(void* to, const unsigned (&r)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(to)),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}
