// Right and slow: a thread for each pooled number, which loads all that it needs by itself.
__device__ float pixel_at(const unsigned char* image, int y, int x) {
    bool inside = y >= 0 && y < 28 && x >= 0 && x < 28;
    return inside ? image[y * 28 + x] - 33.0f : 0.328125f;
}

__global__ void conv1_pool(float* pooled, const unsigned char* images, const float* weights,
                           const float* scale, const float* shift, int batch) {
    int total = batch * 14 * 14 * 32;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int channel = i % 32;
        int window = i / 32 % (14 * 14);
        const unsigned char* image = images + i / (14 * 14 * 32) * 784;
        float largest = 0;  // beginning at 0 is the ReLU
        for (int p = 0; p < 4; ++p) {
            int y = window / 14 * 2 + p / 2;
            int x = window % 14 * 2 + p % 2;
            float sum = 0;
            for (int tap = 0; tap < 9; ++tap) {
                float pixel = pixel_at(image, y + tap / 3 - 1, x + tap % 3 - 1);
                sum += weights[channel * 9 + tap] * pixel;
            }
            largest = fmaxf(largest, scale[channel] * sum + shift[channel]);
        }
        pooled[i] = largest;
    }
}
