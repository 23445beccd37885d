// Many transforms of N points each that lie one after another: read once, written once.
//
// A thread keeps R points in registers, N / R threads make one transform, ROWS transforms a block.
#include "tiles.cuh"

template <int N, int R, int ROWS, int BLOCKS, int SIGN>
__global__ __launch_bounds__(ROWS* N / R, BLOCKS) void fft_rows(const float2* in, float2* out,
                                                                long long rows) {
    extern __shared__ float2 room[];
    const long long first = static_cast<long long>(blockIdx.x) * ROWS;
    rows_tile<N, R, ROWS, SIGN>(in, out, room, first, rows);
}
