constexpr int BM = 64, BN = 64, BK = 8;  // the block's tile of C; k is walked BK at a time
constexpr int TM = 8;  // elements of C a thread, so 512 threads a block
__global__ void matmul(float* c, const float* a, const float* b, int m, int n, int k) {
    __shared__ float tile_a[BM][BK];
    __shared__ float tile_b[BK][BN];
    int t = threadIdx.x;
    int top = blockIdx.y * BM, left = blockIdx.x * BN;
    int row = t / BN * TM, col = t % BN;  // the thread's first element, in the block's tile
    float sum[TM] = {};
    for (int k0 = 0; k0 < k; k0 += BK) {
        int y = top + t / BK, x = k0 + t % BK;  // what it fetches of A
        bool inside = y < m && x < k;
        tile_a[t / BK][t % BK] = inside ? a[(size_t)y * k + x] : 0.0f;
        y = k0 + t / BN, x = left + t % BN;  // and of B
        inside = y < k && x < n;
        tile_b[t / BN][t % BN] = inside ? b[(size_t)y * n + x] : 0.0f;
        __syncthreads();
        for (int i = 0; i < BK; i++) {
            float value_b = tile_b[i][col];
            for (int e = 0; e < TM; e++)
                sum[e] += tile_a[row + e][i] * value_b;
        }
        __syncthreads();
    }
    for (int e = 0; e < TM; e++) {
        if (top + row + e < m && left + col < n)
            c[(size_t)(top + row + e) * n + left + col] = sum[e];
    }
}
