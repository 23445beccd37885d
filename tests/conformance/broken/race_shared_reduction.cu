// expect: race; line 9 or 10; mode: check
// The reduction has one barrier before the loop and none in it.
#include <cstdio>
__global__ void reduce(const int* in, int* out) {
    __shared__ int cache[128];
    cache[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int k = 64; k > 0; k /= 2)
        if (threadIdx.x < k)
            cache[threadIdx.x] += cache[threadIdx.x + k];
    if (threadIdx.x == 0)
        *out = cache[0];
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 128 * sizeof(int));
    cudaMalloc(&out, sizeof(int));
    cudaMemset(in, 0, 128 * sizeof(int));
    reduce<<<1, 128>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
