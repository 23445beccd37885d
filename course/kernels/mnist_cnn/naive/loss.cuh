// A thread an image: its share of the mean loss, and of the gradient with respect to its ten logits
__global__ void cross_entropy(float* share, float* dlogits, const float* logits,
                              const unsigned char* labels, int B) {
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= B)
        return;
    const float* z = logits + 10 * b;
    int label = labels[b];
    float largest = z[0];
    for (int k = 1; k < 10; ++k)
        largest = fmaxf(largest, z[k]);
    float sum = 0;
    for (int k = 0; k < 10; ++k)
        sum += expf(z[k] - largest);  // without `- largest`, expf overflows at 89
    share[b] = (logf(sum) + largest - z[label]) / B;
    for (int k = 0; k < 10; ++k) {
        float softmax = expf(z[k] - largest) / sum;
        dlogits[10 * b + k] = (softmax - (k == label)) / B;
    }
}
