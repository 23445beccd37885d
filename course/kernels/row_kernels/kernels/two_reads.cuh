// Rows that are read twice: once for their sums, and once more, from the SM's cache, for the
// result. Nothing of a row stays in registers, so an SM has as many threads as it can, and the
// caches are told what to keep: a row until it was read again, and not a moment longer.
#pragma once
#include "fast.cuh"

__device__ inline const Pack* pack_of(const Element* row, int k) {
    return reinterpret_cast<const Pack*>(row + column_of(k));
}

// Read a pack that will be read again.
__device__ inline void read_first(float (&v)[pack], const Pack* from) {
    uint4 bits;
    asm volatile("ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(from), "l"(evict_last()));
    unpack(v, *reinterpret_cast<Pack*>(&bits));
}

// Read a pack for the last time.
__device__ inline void read_last(float (&v)[pack], const Pack* from) {
    uint4 bits;
    asm volatile("ld.global.L1::evict_first.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(from), "l"(evict_first()));
    unpack(v, *reinterpret_cast<Pack*>(&bits));
}

// ---- count, mean and sum of squared deviations, of any values

struct Moments {
    float count;
    float mean;
    float squares;
};

// Of both together (Chan, Golub, LeVeque 1979): exact where sums of squares would cancel.
__device__ inline Moments merge(Moments a, Moments b) {
    float count = a.count + b.count;
    float share = count > 0 ? b.count / count : 0;
    float apart = b.mean - a.mean;
    return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

// The same of two that have as many values: no division, and the same bits in either order.
__device__ inline Moments merge_equal(Moments a, Moments b) {
    float apart = b.mean - a.mean;
    float between = apart * apart * (a.count / 2);
    return {2 * a.count, a.mean / 2 + b.mean / 2, (a.squares + b.squares) + between};
}

__device__ inline Moments moments_of(const float (&v)[pack]) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < pack; ++i)
        sum += v[i];
    float mean = sum / pack;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < pack; ++i)
        squares += (v[i] - mean) * (v[i] - mean);
    return {pack, mean, squares};
}

__device__ inline Moments shuffle(Moments m, int lanes) {
    return {shuffle(m.count, lanes), shuffle(m.mean, lanes), shuffle(m.squares, lanes)};
}

// All threads of a row have as many values, and halves of its warps as many warps.
constexpr bool balanced = even && (group_warps & (group_warps - 1)) == 0;

// Merge the moments of neighbours among so many lanes.
__device__ inline Moments lanes_merge(Moments m, int lanes) {
#pragma unroll
    for (lanes /= 2; lanes > 0; lanes /= 2) {
        if (balanced)
            m = merge_equal(m, {m.count, shuffle(m.mean, lanes), shuffle(m.squares, lanes)});
        else
            m = merge(m, shuffle(m, lanes));
    }
    return m;
}

__shared__ Moments moments_of_warps[warps];
__shared__ Moments moments_of_row[tile_rows];

// Merge the moments of a row's threads; each of them gets the same result.
__device__ inline Moments all_merge(Moments m) {
    int lane = threadIdx.x % 32;
    const Moments* of_row = moments_of_warps + row_in_tile() * group_warps;
    m = lanes_merge(m, 32);
    if (lane == 0)
        moments_of_warps[threadIdx.x / 32] = m;
    __syncthreads();
    if (balanced)  // every warp comes to the same bits
        return lanes_merge(of_row[lane % group_warps], group_warps);
    if (member() < 32) {
        m = lane < group_warps ? of_row[lane] : Moments{};
        m = lanes_merge(m, 32);
        if (lane == 0)
            moments_of_row[row_in_tile()] = m;
    }
    __syncthreads();
    return moments_of_row[row_in_tile()];
}
