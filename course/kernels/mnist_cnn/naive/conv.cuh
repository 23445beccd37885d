// y[b][k][i][j] = sum over c, r, s of  x[b][c][i + r - 1][j + s - 1] * w[k][c][r][s]
__global__ void conv_forward(float* y, const float* x, const float* w, int B, int C, int K, int H,
                             int W) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;  // one thread an element of y
    if (n >= B * K * H * W)
        return;
    int j = n % W;
    int i = n / W % H;
    int k = n / (W * H) % K;
    int b = n / (W * H * K);
    float left = 0;  // s = 0, 1, 2: three sums that need not wait for each other
    float middle = 0;
    float right = 0;
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < 3; ++r) {
            int u = i + r - 1;
            if (u < 0 || u >= H)
                continue;  // outside are zeros
            const float* row = x + ((b * C + c) * H + u) * W + j;
            const float* tap = w + ((k * C + c) * 3 + r) * 3;
            if (j > 0)
                left += row[-1] * tap[0];
            middle += row[0] * tap[1];
            if (j < W - 1)
                right += row[1] * tap[2];
        }
    y[n] = left + middle + right;
}

// dx[b][c][u][v] = sum over k, r, s of  dy[b][k][u - r + 1][v - s + 1] * w[k][c][r][s]
__global__ void conv_backward_input(float* dx, const float* dy, const float* w, int B, int C, int K,
                                    int H, int W) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;  // one thread an element of dx
    if (n >= B * C * H * W)
        return;
    int v = n % W;
    int u = n / W % H;
    int c = n / (W * H) % C;
    int b = n / (W * H * C);
    float right = 0;  // s = 0 took its x for the y on the right
    float middle = 0;
    float left = 0;
    for (int k = 0; k < K; ++k)
        for (int r = 0; r < 3; ++r) {
            int i = u - r + 1;
            if (i < 0 || i >= H)
                continue;
            const float* row = dy + ((b * K + k) * H + i) * W + v;
            const float* tap = w + ((k * C + c) * 3 + r) * 3;
            if (v < W - 1)
                right += row[1] * tap[0];
            middle += row[0] * tap[1];
            if (v > 0)
                left += row[-1] * tap[2];
        }
    dx[n] = left + middle + right;
}
