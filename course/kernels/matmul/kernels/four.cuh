// Four neighbours in shared memory at once: 16 bytes, at an address that is a multiple of 16.
#pragma once

__device__ float4& four(float& first) {
    return *(float4*)&first;
}

// N values, by fours; each four begins `apart` words after the one before.
template <int N>
__device__ void read_fours(float (&values)[N], float& first, int apart) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        four(values[i]) = *(float4*)(&first + i / 4 * apart);
    }
}

// Four neighbours in a row of A become neighbours in a column of its tile.
template <int STEPS, int PITCH>
__device__ void turn(float (&tile)[STEPS][PITCH], int row, int col, float4 value) {
    tile[col][row] = value.x;
    tile[col + 1][row] = value.y;
    tile[col + 2][row] = value.z;
    tile[col + 3][row] = value.w;
}
