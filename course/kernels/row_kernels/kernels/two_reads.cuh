// Rows that are read twice: once for their sums, and once more, from the SM's cache, for the
// result. Nothing of a row stays in registers, so an SM has as many threads as it can, and the
// cache is told what to keep: a row until it was read again, and not a moment longer.
#pragma once
#include "fast.cuh"

__device__ inline const Pack* pack_of(const Element* row, int k) {
    return reinterpret_cast<const Pack*>(row + column_of(k));
}

__device__ inline const float4* as_floats(const Pack* from) {
    return reinterpret_cast<const float4*>(from);
}

// Read a pack that will be read again.
__device__ inline void read_first(float (&v)[pack], const Pack* from) {
    float4 bits;
    asm volatile("ld.global.L1::evict_last.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(bits.x), "=f"(bits.y), "=f"(bits.z), "=f"(bits.w)
                 : "l"(as_floats(from)));
    unpack(v, *reinterpret_cast<Pack*>(&bits));
}

// Read a pack for the last time.
__device__ inline void read_last(float (&v)[pack], const Pack* from) {
    float4 bits;
    asm volatile("ld.global.L1::evict_first.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(bits.x), "=f"(bits.y), "=f"(bits.z), "=f"(bits.w)
                 : "l"(as_floats(from)));
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

__device__ inline Moments warp_merge(Moments m) {
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        m = merge(m, {shuffle(m.count, lanes), shuffle(m.mean, lanes), shuffle(m.squares, lanes)});
    return m;
}

__shared__ Moments moments_of_warps[warps];
__shared__ Moments moments_of_row[tile_rows];

// Merge the moments of a row's threads; each of them gets the same result.
__device__ inline Moments all_merge(Moments m) {
    int lane = threadIdx.x % 32;
    m = warp_merge(m);
    if (lane == 0)
        moments_of_warps[threadIdx.x / 32] = m;
    __syncthreads();
    if (member() < 32) {
        m = lane < group_warps ? moments_of_warps[row_in_tile() * group_warps + lane] : Moments{};
        m = warp_merge(m);
        if (lane == 0)
            moments_of_row[row_in_tile()] = m;
    }
    __syncthreads();
    return moments_of_row[row_in_tile()];
}
