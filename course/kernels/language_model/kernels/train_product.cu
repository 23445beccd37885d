// All matrix products of training: out = a b, or out += a b, whichever way the factors lie.
// a[row][x] is a[row * a_row + x * a_x], b[x][col] is b[x * b_x + col * b_col].
// Grid: (columns / 64, rows / 64, slices of x), block: 64 threads, each with 8 x 8 results.
// Slices add atomically, so there out must hold what is added to.
#define TILE 64
#define STEP 32
#define SIDE 8
#define THREADS 64

// A tile of a factor: tile[x][i] is from[i * stride + x * along], and 0 behind either end.
__device__ void bring(float tile[STEP][TILE + 4], const float* from, int stride, int along,
                      int rows, int steps) {
    for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
        // neighbouring threads read neighbours, whichever way the factor lies
        int row = along == 1 ? i / STEP : i % TILE;
        int x = along == 1 ? i % STEP : i / TILE;
        bool inside = row < rows && x < steps;
        tile[x][row] = inside ? from[(size_t)row * stride + (size_t)x * along] : 0;
    }
}

__global__ void product(float* out, const float* a, const float* b, int rows, int cols, int depth,
                        int a_row, int a_x, int b_x, int b_col, int adds) {
    __shared__ float left[STEP][TILE + 4];
    __shared__ float right[STEP][TILE + 4];
    int row = blockIdx.y * TILE;
    int col = blockIdx.x * TILE;
    int down = threadIdx.x / SIDE * SIDE;
    int across = threadIdx.x % SIDE * SIDE;
    int slice = (depth + gridDim.z - 1) / gridDim.z;
    int first = blockIdx.z * slice;
    int end = min(first + slice, depth);
    float sums[SIDE][SIDE] = {};
    for (int x = first; x < end; x += STEP) {
        bring(left, a + (size_t)row * a_row + (size_t)x * a_x, a_row, a_x, rows - row, end - x);
        bring(right, b + (size_t)col * b_col + (size_t)x * b_x, b_col, b_x, cols - col, end - x);
        __syncthreads();
        for (int i = 0; i < STEP; ++i) {
            float l[SIDE], r[SIDE];
#pragma unroll
            for (int j = 0; j < SIDE; ++j) {
                l[j] = left[i][down + j];
                r[j] = right[i][across + j];
            }
#pragma unroll
            for (int j = 0; j < SIDE; ++j)
#pragma unroll
                for (int k = 0; k < SIDE; ++k)
                    sums[j][k] += l[j] * r[k];
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < SIDE; ++j)
#pragma unroll
        for (int k = 0; k < SIDE; ++k) {
            if (row + down + j >= rows || col + across + k >= cols)
                continue;
            float* place = out + (size_t)(row + down + j) * cols + col + across + k;
            if (gridDim.z > 1)
                atomicAdd(place, sums[j][k]);
            else
                *place = sums[j][k] + (adds ? *place : 0);
        }
}
