// total[n] = sum over b of  share[b][n]
__global__ void sum_over_batch(float* total, const float* share, int B, int N) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= N)
        return;
    float sum = 0;
    for (int b = 0; b < B; ++b)
        sum += share[(size_t)b * N + n];
    total[n] = sum;
}
