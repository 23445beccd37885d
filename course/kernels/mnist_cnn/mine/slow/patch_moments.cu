// Right and slow: a thread for each of the 17 x 16 sums, and each goes through all windows.
__device__ float pixel_at(const unsigned char* image, int y, int x) {
    bool inside = y >= 0 && y < 28 && x >= 0 && x < 28;
    return inside ? image[y * 28 + x] - 33.0f : 0.328125f;
}

__global__ void patch_moments(double* moments, const unsigned char* images, int batch) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 17 * 16; i += gridDim.x * blockDim.x) {
        int a = i / 16;
        int b = i % 16;
        double sum = 0;
        for (int window = 0; window < batch * 14 * 14; ++window) {
            const unsigned char* image = images + window / (14 * 14) * 784;
            int y = window / 14 % 14 * 2 - 1;
            int x = window % 14 * 2 - 1;
            float first = a < 16 ? pixel_at(image, y + a / 4, x + a % 4) : 1;
            sum += first * pixel_at(image, y + b / 4, x + b % 4);
        }
        moments[i] = sum;
    }
}
