// y[b][n] = bias[n] + sum over k of  x[b][k] * w[n][k]
__global__ void linear_forward(float* y, const float* x, const float* w, const float* bias, int B,
                               int K, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= B * N)
        return;
    int n = i % N;
    int b = i / N;
    float sum = bias[n];
    for (int k = 0; k < K; ++k)
        sum += x[b * K + k] * w[n * K + k];
    y[i] = sum;
}

// dx[b][k] = sum over n of  dy[b][n] * w[n][k]
__global__ void linear_backward_input(float* dx, const float* dy, const float* w, int B, int K,
                                      int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= B * K)
        return;
    int k = i % K;
    int b = i / K;
    float sum = 0;
    for (int n = 0; n < N; ++n)
        sum += dy[b * N + n] * w[n * K + k];
    dx[i] = sum;
}

// dw[n][k] = sum over b of  dy[b][n] * x[b][k]
__global__ void linear_backward_weight(float* dw, const float* dy, const float* x, int B, int K,
                                       int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * K)
        return;
    int k = i % K;
    int n = i / K;
    float sum = 0;
    for (int b = 0; b < B; ++b)
        sum += dy[b * N + n] * x[b * K + k];
    dw[i] = sum;
}
