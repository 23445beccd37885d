// A warp for each digit: a lane has 4 of the 128 hidden values, and their weights in registers. Sums
// over the digits stay in registers, too, then in shared memory, and leave once a block.
__device__ float sum_of_warp(float value) {
    for (int bit = 16; bit > 0; bit /= 2)
        value += __shfl_xor_sync(~0u, value, bit);
    return value;
}

__global__ void head(float* out, const float* hidden, const float* w, const float* bias,
                     const unsigned char* labels, int batch) {
    __shared__ float total[12 * 128];
    int lane = threadIdx.x % 32;
    int warps = blockDim.x / 32;
    float weight[10][4], dw[10][4] = {}, dbias[10] = {}, dhidden[4] = {};
    float loss = 0;
    for (int i = threadIdx.x; i < 12 * 128; i += blockDim.x)
        total[i] = 0;
    for (int k = 0; k < 10; ++k)
        for (int e = 0; e < 4; ++e)
            weight[k][e] = w[k * 128 + e * 32 + lane];
    __syncthreads();
    for (int n = blockIdx.x * warps + threadIdx.x / 32; n < batch; n += gridDim.x * warps) {
        float h[4], z[10], dh[4] = {};
        for (int e = 0; e < 4; ++e)
            h[e] = hidden[n * 128 + e * 32 + lane];
        float largest = -INFINITY;
        for (int k = 0; k < 10; ++k) {
            float mine = 0;
            for (int e = 0; e < 4; ++e)
                mine += weight[k][e] * h[e];
            z[k] = sum_of_warp(mine) + bias[k];
            largest = fmaxf(largest, z[k]);
        }
        float sum = 0;
        for (int k = 0; k < 10; ++k)
            sum += expf(z[k] - largest);
        int label = labels[n];
        for (int k = 0; k < 10; ++k) {
            float gradient = (expf(z[k] - largest) / sum - (k == label)) / batch;
            if (k == label)
                loss += (logf(sum) + largest - z[k]) / batch;
            dbias[k] += gradient;
            for (int e = 0; e < 4; ++e) {
                dw[k][e] += gradient * h[e];
                dh[e] += gradient * weight[k][e];
            }
        }
        for (int e = 0; e < 4; ++e) {
            dh[e] = h[e] > 0 ? dh[e] : 0;
            dhidden[e] += dh[e];
            out[(12 + n) * 128 + e * 32 + lane] = dh[e];
        }
    }
    for (int e = 0; e < 4; ++e) {
        for (int k = 0; k < 10; ++k)
            atomicAdd(&total[k * 128 + e * 32 + lane], dw[k][e]);
        atomicAdd(&total[10 * 128 + e * 32 + lane], dhidden[e]);
    }
    if (lane == 0) {
        for (int k = 0; k < 10; ++k)
            atomicAdd(&total[11 * 128 + k], dbias[k]);
        atomicAdd(&total[11 * 128 + 10], loss);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 11 * 128 + 11; i += blockDim.x)
        atomicAdd(&out[i], total[i]);
}
