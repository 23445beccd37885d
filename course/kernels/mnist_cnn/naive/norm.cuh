// The sum of `value` over all 256 threads of the block; every one gets it.
__device__ float block_sum(float value) {
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = value;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    float total = part[0];
    __syncthreads();  // the next call must not overwrite part[0] too early
    return total;
}

// x is [B][C][S]: S places (rows times columns) in each channel. Where is number n of channel c?
__device__ int place_of(int n, int c, int C, int S) {
    int b = n / S;
    return (b * C + c) * S + n % S;
}

// One block a channel.
__global__ void norm_statistics(float* mean, float* invstd, const float* x, int B, int C, int S,
                                float eps) {
    int c = blockIdx.x;
    int N = B * S;
    float sum = 0;
    for (int n = threadIdx.x; n < N; n += 256)
        sum += x[place_of(n, c, C, S)];
    float m = block_sum(sum) / N;
    float squares = 0;
    for (int n = threadIdx.x; n < N; n += 256) {
        float d = x[place_of(n, c, C, S)] - m;
        squares += d * d;
    }
    float variance = block_sum(squares) / N;
    if (threadIdx.x == 0) {
        mean[c] = m;
        invstd[c] = 1 / sqrtf(variance + eps);
    }
}

__global__ void norm_forward(float* y, const float* x, const float* mean, const float* invstd,
                             const float* gamma, const float* beta, int B, int C, int S) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= B * C * S)
        return;
    int c = n / S % C;
    float normal = (x[n] - mean[c]) * invstd[c];
    y[n] = normal * gamma[c] + beta[c];
}

// dbeta[c] = sum of dy,  dgamma[c] = sum of dy * normal,  over the batch and all places.
__global__ void norm_backward_sums(float* dgamma, float* dbeta, const float* dy, const float* x,
                                   const float* mean, const float* invstd, int B, int C, int S) {
    int c = blockIdx.x;  // one block a channel
    float plain = 0;
    float weighted = 0;
    for (int n = threadIdx.x; n < B * S; n += 256) {
        int place = (n / S * C + c) * S + n % S;
        plain += dy[place];
        weighted += dy[place] * (x[place] - mean[c]) * invstd[c];
    }
    plain = block_sum(plain);
    weighted = block_sum(weighted);
    if (threadIdx.x == 0) {
        dbeta[c] = plain;
        dgamma[c] = weighted;
    }
}
