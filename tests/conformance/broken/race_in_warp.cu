// expect: race; line 10 or 11; mode: check
// Old warp-synchronous code: the lanes of a warp do not run in step, so __syncwarp() is needed.
#include <cstdio>
__global__ void reduce(const int* in, int* out) {
    __shared__ int cache[32];
    int lane = threadIdx.x;
    cache[lane] = in[lane];
    __syncwarp();
    for (int k = 16; k > 0; k /= 2)
        if (lane < k)
            cache[lane] += cache[lane + k];
    if (lane == 0)
        *out = cache[0];
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 32 * sizeof(int));
    cudaMalloc(&out, sizeof(int));
    cudaMemset(in, 0, 32 * sizeof(int));
    reduce<<<1, 32>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
