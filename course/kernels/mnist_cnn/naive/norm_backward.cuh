__global__ void norm_backward(float* dx, const float* dy, const float* x, const float* mean,
                              const float* invstd, const float* gamma, const float* dgamma,
                              const float* dbeta, int B, int C, int S) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= B * C * S)
        return;
    int c = n / S % C;
    float N = B * S;
    float normal = (x[n] - mean[c]) * invstd[c];
    float from_mean = dbeta[c] / N;
    float from_deviation = normal * dgamma[c] / N;
    float left = dy[n] - from_mean - from_deviation;
    dx[n] = left * gamma[c] * invstd[c];
}
