// A picture and one filter of SIDE x SIDE taps (odd), four ways. The result is as large as the
// picture ("same"); beyond its edges are zeros. Pictures: h x w, float, row after row, fewer than
// 2^31 pixels.
#ifndef SIDE
#define SIDE 5
#endif

constexpr int HALF = SIDE / 2;

// A filter that is handed over by value: parameters of a kernel lie in constant memory.
struct Filter {
    float at[SIDE * SIDE];
};

__device__ float pixel(const float* picture, int y, int x, int h, int w) {
    bool inside = y >= 0 && y < h && x >= 0 && x < w;
    return inside ? picture[y * w + x] : 0;
}

// One thread a pixel. Picture and filter in global memory.
// Grid: (ceil(w / 32), ceil(h / 8)), block: (32, 8).
__global__ void naive(float* out, const float* picture, const float* filter, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    float sum = 0;
    for (int r = 0; r < SIDE; ++r)
        for (int s = 0; s < SIDE; ++s)
            sum += filter[r * SIDE + s] * pixel(picture, y + r - HALF, x + s - HALF, h, w);
    out[y * w + x] = sum;
}

// The same, the filter in constant memory.
__global__ void constant(float* out, const float* picture, const Filter filter, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    float sum = 0;
#pragma unroll
    for (int r = 0; r < SIDE; ++r)
#pragma unroll
        for (int s = 0; s < SIDE; ++s)
            sum += filter.at[r * SIDE + s] * pixel(picture, y + r - HALF, x + s - HALF, h, w);
    out[y * w + x] = sum;
}

constexpr int ACROSS = 32, DOWN = 8;  // the block's tile of the result
constexpr int TILE_W = ACROSS + SIDE - 1, TILE_H = DOWN + SIDE - 1;  // with its halo

// The block's part of the picture, with a halo, in shared memory: each pixel is loaded once.
__global__ void tiled(float* out, const float* picture, const Filter filter, int h, int w) {
    __shared__ float tile[TILE_H][TILE_W];
    int left = blockIdx.x * ACROSS;
    int top = blockIdx.y * DOWN;
    for (int i = threadIdx.y * ACROSS + threadIdx.x; i < TILE_H * TILE_W; i += ACROSS * DOWN) {
        int y = i / TILE_W;
        int x = i % TILE_W;
        tile[y][x] = pixel(picture, top + y - HALF, left + x - HALF, h, w);
    }
    __syncthreads();
    int x = left + threadIdx.x;
    int y = top + threadIdx.y;
    if (x >= w || y >= h)
        return;
    float sum = 0;
#pragma unroll
    for (int r = 0; r < SIDE; ++r)
#pragma unroll
        for (int s = 0; s < SIDE; ++s)
            sum += filter.at[r * SIDE + s] * tile[threadIdx.y + r][threadIdx.x + s];
    out[y * w + x] = sum;
}

#ifndef ROWS
#define ROWS 16
#endif

// A thread walks down a column of ROWS pixels. What it loads of a row counts for SIDE results,
// whose sums it keeps in registers. Grid: (ceil(w / 128), ceil(h / ROWS)), block: 128.
__global__ void registers(float* out, const float* picture, const Filter filter, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int top = blockIdx.y * ROWS;
    if (x >= w)
        return;
    float sums[SIDE] = {};
#pragma unroll
    for (int i = 0; i < ROWS + SIDE - 1; ++i) {
        float row[SIDE];
#pragma unroll
        for (int s = 0; s < SIDE; ++s)
            row[s] = pixel(picture, top + i - HALF, x + s - HALF, h, w);
#pragma unroll
        for (int k = 0; k < SIDE; ++k)
#pragma unroll
            for (int s = 0; s < SIDE; ++s)
                sums[k] += filter.at[(SIDE - 1 - k) * SIDE + s] * row[s];
        int y = top + i - SIDE + 1;  // this row of the result is complete
        if (y >= top && y < h)
            out[y * w + x] = sums[0];
#pragma unroll
        for (int k = 0; k < SIDE; ++k)
            sums[k] = k + 1 < SIDE ? sums[k + 1] : 0;
    }
}
