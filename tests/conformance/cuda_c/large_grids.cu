// Large grids in each dimension, blocks of 1024 threads with barriers, many launches in a row,
// launch sizes of all types.
#include <cstdio>

__global__ void count(unsigned* total, unsigned long long* sum) {
    atomicAdd(total, 1);
    atomicAdd(sum, (unsigned long long)blockIdx.x + blockIdx.y + blockIdx.z);
}

__global__ void blocks(int* out) {
    __shared__ int cache[1024];
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    cache[t] = t;
    __syncthreads();
    for (int k = 512; k > 0; k /= 2) {
        if (t < k)
            cache[t] += cache[t + k];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = cache[0] + blockIdx.x;
}

__global__ void increment(int* x) {
    ++*x;
}

int main() {
    unsigned* total;
    unsigned long long* sum;
    int* out;
    cudaMallocManaged(&total, sizeof(unsigned));
    cudaMallocManaged(&sum, sizeof(unsigned long long));
    cudaMallocManaged(&out, 64 * sizeof(int));
    for (dim3 grid : {dim3(100000), dim3(1, 65535), dim3(1, 1, 65535), dim3(30, 40, 50)}) {
        *total = 0, *sum = 0;
        count<<<grid, 1>>>(total, sum);
        cudaDeviceSynchronize();
        printf("%u %llu\n", *total, *sum);
    }
    for (dim3 block : {dim3(1024), dim3(32, 32), dim3(16, 1, 64), dim3(8, 64, 2)}) {
        blocks<<<64, block>>>(out);
        cudaDeviceSynchronize();
        printf("%d %d\n", out[0], out[63]);
    }
    out[0] = 0;
    size_t one = 1;
    short also = 1;
    for (int i = 0; i < 2000; i++)
        increment<<<one, also>>>(out);
    cudaDeviceSynchronize();
    printf("%d %s\n", out[0], cudaGetErrorName(cudaGetLastError()));
    cudaFree(total);
    cudaFree(sum);
    cudaFree(out);
}
