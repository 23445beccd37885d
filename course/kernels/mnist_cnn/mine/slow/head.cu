// Right and slow: a thread for each digit, which adds its part of every sum with an atomic.
__global__ void head(float* out, const float* partial, const float* hidden_bias, const float* w,
                     const float* bias, const unsigned char* labels, int batch, int splits) {
    for (int n = blockIdx.x * blockDim.x + threadIdx.x; n < batch; n += gridDim.x * blockDim.x) {
        float h[128];
        for (int j = 0; j < 128; ++j) {
            h[j] = hidden_bias[j];
            for (int s = 0; s < splits; ++s)
                h[j] += partial[(s * batch + n) * 128 + j];
            h[j] = fmaxf(h[j], 0);
        }
        float logit[10];
        float largest = -INFINITY;
        for (int k = 0; k < 10; ++k) {
            logit[k] = bias[k];
            for (int j = 0; j < 128; ++j)
                logit[k] += w[k * 128 + j] * h[j];
            largest = fmaxf(largest, logit[k]);
        }
        float sum = 0;
        for (int k = 0; k < 10; ++k)
            sum += expf(logit[k] - largest);
        int label = labels[n];
        float gradient[10];
        for (int k = 0; k < 10; ++k) {
            float softmax = expf(logit[k] - largest) / sum;
            gradient[k] = (softmax - (k == label)) / batch;
            atomicAdd(&out[11 * 128 + k], gradient[k]);
        }
        atomicAdd(&out[11 * 128 + 10], (logf(sum) + largest - logit[label]) / batch);
        for (int j = 0; j < 128; ++j) {
            float dh = 0;
            for (int k = 0; k < 10; ++k) {
                atomicAdd(&out[k * 128 + j], gradient[k] * h[j]);
                dh += gradient[k] * w[k * 128 + j];
            }
            dh = h[j] > 0 ? dh : 0;
            atomicAdd(&out[10 * 128 + j], dh);
            out[(12 + n) * 128 + j] = dh;
        }
    }
}
