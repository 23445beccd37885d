// The numbers of the model's weights and cache, eight at a time, and sums over a warp.
#pragma once
#ifdef FLOAT
using number = float;
#else
#include <cuda_bf16.h>
using number = __nv_bfloat16;
#endif

constexpr int PAGE = 16;  // positions of a page of the cache
constexpr int EIGHT = 8;  // numbers that a lane fetches at once: 16 bytes of bfloat16

struct alignas(16) Eight {
    number x[EIGHT];
};

struct alignas(16) EightFloats {
    float x[EIGHT];
};

__device__ inline float sum_of_warp(float x) {
    for (int other = 16; other > 0; other /= 2)
        x += __shfl_xor_sync(~0u, x, other);
    return x;
}

// Where the row of a position begins in the cache, as problem.Cache has it, in numbers.
// table: the pages of this sequence. layer_pages: pages of the whole layers before this one.
__device__ inline size_t place_in_cache(const int* table, size_t layer_pages, int position,
                                        int kv_heads, int kv_head, int head) {
    size_t page = layer_pages + table[position / PAGE];
    return ((page * PAGE + position % PAGE) * kv_heads + kv_head) * head;
}
