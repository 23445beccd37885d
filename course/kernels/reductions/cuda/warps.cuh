// What the lanes of a warp do together.
#pragma once

constexpr int WARP = 32;
constexpr unsigned EVERYONE = 0xffffffff;

// The sum of the values of all lanes, in every lane.
template <typename T>
__device__ inline T warp_sum(T value) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(EVERYONE, value, step);
    return value;
}

// The sum of the values in lanes 0 to `lane`.
template <typename T>
__device__ inline T warp_scan(T value, int lane) {
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
        const T left = __shfl_up_sync(EVERYONE, value, step);
        if (lane >= step)
            value += left;
    }
    return value;
}
