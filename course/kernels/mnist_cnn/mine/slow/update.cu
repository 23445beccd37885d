// Right and slow: a thread has neighbouring weights, one after the other, so the lanes of a warp
// are far from one another.
__global__ void update(float* weights, const float* parts, int count, int splits, float rate) {
    int threads = gridDim.x * blockDim.x;
    int each = (count + threads - 1) / threads;
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
    for (int i = first; i < min(first + each, count); ++i) {
        float gradient = 0;
        for (int s = 0; s < splits; ++s)
            gradient += parts[s * count + i];
        weights[i] -= rate * gradient;
    }
}
