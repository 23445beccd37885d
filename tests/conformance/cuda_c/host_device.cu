// __host__ __device__ functions run on both sides; __CUDA_ARCH__ tells the sides apart.
#include <cstdio>

__host__ __device__ int side() {
#ifdef __CUDA_ARCH__
    return 2;
#else
    return 1;
#endif
}

__host__ __device__ constexpr int cube(int x) {
    return x * x * x;
}

__global__ void ask(int* out) {
    out[0] = side();
    out[1] = cube(threadIdx.x + 4);
}

int main() {
    static_assert(cube(3) == 27, "constexpr on the host");
    int* out;
    cudaMallocManaged(&out, 2 * sizeof(int));
    ask<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    printf("host %d device %d cube %d %d\n", side(), out[0], cube(2), out[1]);
    cudaFree(out);
}
