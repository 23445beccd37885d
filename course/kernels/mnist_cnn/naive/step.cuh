__global__ void scale_pixels(float* x, const unsigned char* images, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = (images[i] / 255.0f - 0.1307f) / 0.3081f;
}

__global__ void sgd(float* w, const float* dw, float lr, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        w[i] -= lr * dw[i];
}

__global__ void count_right(int* right, const float* logits, const unsigned char* labels, int B) {
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= B)
        return;
    const float* z = logits + 10 * b;
    int best = 0;
    for (int k = 1; k < 10; ++k)
        if (z[k] > z[best])
            best = k;
    if (best == labels[b])
        atomicAdd(right, 1);
}
