// A block computes a TILE x TILE piece of C from tiles of A and B that its threads fetch together.
constexpr int TILE = 32;  // the block must be TILE x TILE threads

__global__ void matmul(float* c, const float* a, const float* b, int m, int n, int k) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int x = threadIdx.x;
    int y = threadIdx.y;
    int col = blockIdx.x * TILE + x;
    int row = blockIdx.y * TILE + y;
    float sum = 0.0f;
    for (int k0 = 0; k0 < k; k0 += TILE) {
        // What lies outside a matrix counts as zero: it adds nothing to any sum.
        bool in_a = row < m && k0 + x < k;
        bool in_b = k0 + y < k && col < n;
        tile_a[y][x] = in_a ? a[(size_t)row * k + k0 + x] : 0.0f;
        tile_b[y][x] = in_b ? b[(size_t)(k0 + y) * n + col] : 0.0f;
        __syncthreads();  // the tiles are complete
        for (int i = 0; i < TILE; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();  // nobody reads them any more
    }
    if (row < m && col < n) {
        c[(size_t)row * n + col] = sum;
    }
}
