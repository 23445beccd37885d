// A filter of K * K taps on pictures of float, directly: the rival of the way by the transform.
//
// A block has a tile of TILE * TILE results and what they need around it in shared memory. A thread
// has ROWS results below one another. What it reads of one column counts for all of them.
// The taps are an argument: then they lie in constant memory, where a multiplication reads them.

template <int K>
struct Taps {
    float at[K * K];
};

constexpr int TILE = 64;

// in, out: pictures of side * side floats, one a blockIdx.z. Of out, side - K + 1 rows and columns
// are written.
template <int K, int ROWS>
__global__ __launch_bounds__(TILE* TILE / ROWS) void filter_directly(const float* in, float* out,
                                                                     int side, Taps<K> taps) {
    constexpr int EDGE = TILE + K - 1, THREADS = TILE * TILE / ROWS;
    __shared__ float tile[EDGE][EDGE];
    const int left = blockIdx.x * TILE, top = blockIdx.y * TILE;
    in += static_cast<long long>(blockIdx.z) * side * side;
    out += static_cast<long long>(blockIdx.z) * side * side;
    for (int i = threadIdx.x; i < EDGE * EDGE; i += THREADS) {
        const int y = i / EDGE, x = i % EDGE;
        const bool inside = top + y < side && left + x < side;
        tile[y][x] = inside ? in[(top + y) * side + left + x] : 0;
    }
    __syncthreads();

    const int x = threadIdx.x % TILE, first = threadIdx.x / TILE * ROWS;
    float sum[ROWS] = {};
#pragma unroll(K < 16 ? K : 1)
    for (int s = 0; s < K; s++) {
        float column[ROWS + K - 1];
#pragma unroll
        for (int y = 0; y < ROWS + K - 1; y++)
            column[y] = tile[first + y][x + s];
#pragma unroll
        for (int r = 0; r < K; r++) {
#pragma unroll
            for (int y = 0; y < ROWS; y++)
                sum[y] += taps.at[r * K + s] * column[y + r];
        }
    }
#pragma unroll
    for (int y = 0; y < ROWS; y++) {
        const int row = top + first + y;
        if (row <= side - K && left + x <= side - K)
            out[row * side + left + x] = sum[y];
    }
}
