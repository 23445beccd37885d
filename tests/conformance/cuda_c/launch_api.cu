// Launches by function: cudaLaunchKernel and cudaLaunchKernelEx.
#include <cstdio>

__global__ void fill(int* out, int n, float scale) {
    extern __shared__ int cache[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cache[threadIdx.x] = i;
    __syncthreads();
    if (i < n)
        out[i] = int(scale * cache[threadIdx.x]);
}

template <typename T>
__global__ void set(T* out, T value) {
    *out = value;
}

int main() {
    int *out, n = 10;
    float scale = 1.5f;
    double* d;
    cudaMallocManaged(&out, n * sizeof(int));
    cudaMallocManaged(&d, sizeof(double));
    void* arguments[] = {&out, &n, &scale};
    printf("%s\n", cudaGetErrorName(cudaLaunchKernel((const void*)fill, dim3(3), dim3(4), arguments,
                                                     4 * sizeof(int), 0)));
    cudaDeviceSynchronize();
    printf("%d %d %d\n", out[0], out[5], out[9]);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(3);
    config.blockDim = dim3(4);
    config.dynamicSmemBytes = 4 * sizeof(int);
    printf("%s\n", cudaGetErrorName(cudaLaunchKernelEx(&config, fill, out, n, 3.0f)));
    double value = 2.5;
    void* more[] = {&d, &value};
    cudaLaunchKernel(set<double>, 1, 1, more);
    cudaDeviceSynchronize();
    printf("%d %d %d %g\n", out[0], out[5], out[9], *d);
    cudaFree(out);
    cudaFree(d);
}
