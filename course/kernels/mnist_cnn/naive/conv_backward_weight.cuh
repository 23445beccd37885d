// Image b's share: share[b][k][c][r][s] = sum over i, j of
//   dy[b][k][i][j] * x[b][c][i + r - 1][j + s - 1]
__global__ void conv_backward_weight(float* share, const float* dy, const float* x, int B, int C,
                                     int K, int H, int W) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;  // three weights s = 0, 1, 2 and an image
    if (n >= B * K * C * 3)
        return;
    int r = n % 3;
    int c = n / 3 % C;
    int k = n / (3 * C) % K;
    int b = n / (3 * C * K);
    float left = 0, middle = 0, right = 0;
    int first = max(0, 1 - r);
    int end = min(H, H + 1 - r);
    for (int i = first; i < end; ++i) {
        const float* dy_row = dy + ((b * K + k) * H + i) * W;
        const float* row = x + ((b * C + c) * H + i + r - 1) * W;
        for (int j = 0; j < W; ++j) {
            if (j > 0)
                left += dy_row[j] * row[j - 1];
            middle += dy_row[j] * row[j];
            if (j < W - 1)
                right += dy_row[j] * row[j + 1];
        }
    }
    share[3 * n] = left;
    share[3 * n + 1] = middle;
    share[3 * n + 2] = right;
}
