// What the products with 4-bit weights share (gemv_int4.cu, gemm_int4.cu): tiles of 16 rows and 128
// columns, pieces of words, and the kernels before and after.
#pragma once
#include "../../matmul/kernels/mma.cuh"

constexpr int TILE_ROWS = 16, GROUP = 128;  // a tile is one group of columns wide
constexpr int TILE_LOADS = 64;  // of 16 bytes
constexpr int COLUMNS = 8;  // of mma's second factor: vectors, as many as there are

// ---- the next kernel, and the one before

// The kernel after this one may begin, as far as there is room for its blocks.
__device__ void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until the kernel before this one is over and what it wrote can be read.
__device__ void wait_for_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- pieces of words

__device__ unsigned word(const uint4& four, int i) {
    const unsigned words[4] = {four.x, four.y, four.z, four.w};
    return words[i];
}

__device__ float lower(unsigned two) {
    return __uint_as_float(two << 16);
}
__device__ float upper(unsigned two) {
    return __uint_as_float(two & 0xffff0000);
}
