__global__ void relu_forward(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0 ? 0 : x[i];  // not x > 0 ? x : 0, which would turn NaN into 0
}

__global__ void relu_backward(float* dx, const float* dy, const float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}

// x is [N][H][W], y and winner [N][H / 2][W / 2]; N counts images times channels
__global__ void pool_forward(float* y, unsigned char* winner, const float* x, int N, int H, int W) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    int w = W / 2;
    int h = H / 2;
    if (n >= N * h * w)
        return;
    int row = n / w % h * 2;
    int column = n % w * 2;
    const float* window = x + (n / (w * h) * H + row) * W + column;  // its upper left corner
    int best = 0;
    for (int k = 1; k < 4; ++k) {
        float challenger = window[k / 2 * W + k % 2];
        if (challenger > window[best / 2 * W + best % 2])
            best = k;  // > : the first of equals stays
    }
    y[n] = window[best / 2 * W + best % 2];
    winner[n] = best;
}
