// Winograd's F(2 x 2, 3 x 3): tiles of 2 x 2 results from 4 x 4 pixels, with 16 products instead
// of 36. Pictures and filters are transformed, products are summed over the channels there (16
// matrix products), and the sums are transformed back. Stride 1, padding 1, NHWC.
// Source: A. Lavin, S. Gray, Fast algorithms for convolutional neural networks, 2015.
#include <cuda_bf16.h>

#ifndef NUMBER
#define NUMBER float  // what is stored between the steps; sums are float32
#endif

struct Sizes {
    int n, h, w, c, k;

    __device__ int across() const {
        return (w + 1) / 2;
    }
    __device__ int down() const {
        return (h + 1) / 2;
    }
    __device__ int tiles() const {
        return n * across() * down();
    }
};

// B^T d for four numbers of a row or a column.
__device__ void transform_pixels(float (&d)[4]) {
    float d1 = d[1];
    d[0] = d[0] - d[2];
    d[1] = d1 + d[2];
    d[2] = d[2] - d1;
    d[3] = d1 - d[3];
}

// G g: three taps become four numbers.
__device__ void transform_taps(float (&out)[4], float g0, float g1, float g2) {
    out[0] = g0;
    out[1] = (g0 + g1 + g2) / 2;
    out[2] = (g0 - g1 + g2) / 2;
    out[3] = g2;
}

// A^T m: four sums become two results.
__device__ void transform_back(float (&out)[2], float m0, float m1, float m2, float m3) {
    out[0] = m0 + m1 + m2;
    out[1] = m1 - m2 - m3;
}

// v (16, tiles, c) from x. A thread a tile and channel.
__global__ void pictures(NUMBER* v, const NUMBER* x, const Sizes s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int tile = i / s.c;
    int channel = i % s.c;
    if (tile >= s.tiles())
        return;
    int left = tile % s.across() * 2 - 1;
    int top = tile / s.across() % s.down() * 2 - 1;
    int image = tile / s.across() / s.down();
    float d[4][4];
    for (int r = 0; r < 4; ++r) {
        for (int q = 0; q < 4; ++q) {
            int y = top + r;
            int column = left + q;
            bool inside = y >= 0 && y < s.h && column >= 0 && column < s.w;
            size_t at = (((size_t)image * s.h + y) * s.w + column) * s.c + channel;
            d[r][q] = inside ? (float)x[at] : 0;
        }
        transform_pixels(d[r]);
    }
    for (int q = 0; q < 4; ++q) {
        float column[4] = {d[0][q], d[1][q], d[2][q], d[3][q]};
        transform_pixels(column);
        for (int r = 0; r < 4; ++r)
            v[((size_t)(r * 4 + q) * s.tiles() + tile) * s.c + channel] = NUMBER(column[r]);
    }
}

// u (16, c, k) from w (k, 3, 3, c). A thread a filter and channel.
__global__ void filters(NUMBER* u, const NUMBER* w, const Sizes s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int filter = i / s.c;
    int channel = i % s.c;
    if (filter >= s.k)
        return;
    float rows[3][4];
    for (int r = 0; r < 3; ++r) {
        const NUMBER* g = w + ((size_t)filter * 9 + r * 3) * s.c + channel;
        transform_taps(rows[r], (float)g[0], (float)g[s.c], (float)g[2 * s.c]);
    }
    for (int q = 0; q < 4; ++q) {
        float column[4];
        transform_taps(column, rows[0][q], rows[1][q], rows[2][q]);
        for (int r = 0; r < 4; ++r)
            u[((size_t)(r * 4 + q) * s.c + channel) * s.k + filter] = NUMBER(column[r]);
    }
}

// y from m (16, tiles, k), the products' sums. A thread a tile and filter.
__global__ void results(NUMBER* y, const NUMBER* m, const Sizes s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int tile = i / s.k;
    int filter = i % s.k;
    if (tile >= s.tiles())
        return;
    float rows[4][2];
    for (int r = 0; r < 4; ++r) {
        float sums[4];
        for (int q = 0; q < 4; ++q)
            sums[q] = (float)m[((size_t)(r * 4 + q) * s.tiles() + tile) * s.k + filter];
        transform_back(rows[r], sums[0], sums[1], sums[2], sums[3]);
    }
    int left = tile % s.across() * 2;
    int top = tile / s.across() % s.down() * 2;
    int image = tile / s.across() / s.down();
    for (int q = 0; q < 2; ++q) {
        float column[2];
        transform_back(column, rows[0][q], rows[1][q], rows[2][q], rows[3][q]);
        for (int r = 0; r < 2; ++r)
            if (top + r < s.h && left + q < s.w) {
                size_t at = ((size_t)image * s.h + top + r) * s.w + left + q;
                y[at * s.k + filter] = NUMBER(column[r]);
            }
    }
}
