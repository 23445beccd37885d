__global__ void head(float* out, const float* hidden, const float* w, const float* bias,
                     const unsigned char* labels, int batch) {
    for (int n = blockIdx.x * blockDim.x + threadIdx.x; n < batch; n += gridDim.x * blockDim.x) {
        const float* h = hidden + n * 128;
        float z[10], gradient[10], largest = -INFINITY, sum = 0;
        for (int k = 0; k < 10; ++k) {
            z[k] = bias[k];
            for (int j = 0; j < 128; ++j)
                z[k] += w[k * 128 + j] * h[j];
            largest = fmaxf(largest, z[k]);
        }
        for (int k = 0; k < 10; ++k)
            sum += expf(z[k] - largest);
        atomicAdd(&out[11 * 128 + 10], (logf(sum) + largest - z[labels[n]]) / batch);
        for (int k = 0; k < 10; ++k) {
            gradient[k] = (expf(z[k] - largest) / sum - (k == labels[n])) / batch;
            atomicAdd(&out[11 * 128 + k], gradient[k]);
        }
        for (int j = 0; j < 128; ++j) {
            float dh = 0;
            for (int k = 0; k < 10; ++k) {
                atomicAdd(&out[k * 128 + j], gradient[k] * h[j]);
                dh += h[j] > 0 ? gradient[k] * w[k * 128 + j] : 0;
            }
            atomicAdd(&out[10 * 128 + j], dh);
            out[(12 + n) * 128 + j] = dh;
        }
    }
}
