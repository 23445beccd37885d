// A block takes a digit at a time into shared memory; a thread has one of the 16 x 16 sums.
__device__ float pixel_at(const unsigned char* image, int y, int x) {
    bool inside = y >= 0 && y < 28 && x >= 0 && x < 28;
    return inside ? image[y * 28 + x] - 33.0f : 0.328125f;
}

__global__ void patch_moments(double* moments, const unsigned char* images, int batch) {
    __shared__ float pixels[30][30];  // with the border
    int a = threadIdx.x / 16;
    int b = threadIdx.x % 16;
    double product = 0;
    double single = 0;
    for (int digit = blockIdx.x; digit < batch; digit += gridDim.x) {
        __syncthreads();  // nobody reads the last digit any more
        for (int i = threadIdx.x; i < 30 * 30; i += blockDim.x)
            pixels[i / 30][i % 30] = pixel_at(images + digit * 784, i / 30 - 1, i % 30 - 1);
        __syncthreads();
        float products = 0;  // of one digit: whole numbers, which a float holds exactly
        float singles = 0;
        for (int y = 0; y < 28; y += 2)
            for (int x = 0; x < 28; x += 2) {
                float own = pixels[y + b / 4][x + b % 4];
                products += pixels[y + a / 4][x + a % 4] * own;
                singles += own;
            }
        product += products;
        single += singles;
    }
    atomicAdd(&moments[a * 16 + b], product);
    if (a == 0)
        atomicAdd(&moments[16 * 16 + b], single);
}
