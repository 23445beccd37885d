// A block takes a digit at a time into shared memory. A lane has a channel, whose nine weights stay
// in registers; a warp takes window after window, so its 32 results lie side by side.
__device__ float pixel_at(const unsigned char* image, int y, int x) {
    bool inside = y >= 0 && y < 28 && x >= 0 && x < 28;
    return inside ? image[y * 28 + x] - 33.0f : 0.328125f;
}

__global__ void conv1_pool(float* pooled, const unsigned char* images, const float* weights,
                           const float* scale, const float* shift, int batch) {
    __shared__ float pixels[30][30];  // with the border
    int channel = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    float s = scale[channel];
    float t = shift[channel];
    float w[9];
    for (int tap = 0; tap < 9; ++tap)
        w[tap] = weights[channel * 9 + tap];
    for (int digit = blockIdx.x; digit < batch; digit += gridDim.x) {
        __syncthreads();  // nobody reads the last digit any more
        for (int i = threadIdx.x; i < 30 * 30; i += blockDim.x)
            pixels[i / 30][i % 30] = pixel_at(images + digit * 784, i / 30 - 1, i % 30 - 1);
        __syncthreads();
        for (int window = warp; window < 14 * 14; window += blockDim.x / 32) {
            int top = window / 14 * 2;
            int left = window % 14 * 2;
            float largest = 0;
            for (int p = 0; p < 4; ++p) {
                float sum = 0;
                for (int tap = 0; tap < 9; ++tap)
                    sum += w[tap] * pixels[top + p / 2 + tap / 3][left + p % 2 + tap % 3];
                largest = fmaxf(largest, s * sum + t);
            }
            pooled[(digit * 14 * 14 + window) * 32 + channel] = largest;
        }
    }
}
