// A sum over many blocks in one launch: the last block to arrive adds the partial sums.
#include <cstdio>

__device__ unsigned arrived = 0;

__global__ void sum(const int* in, int n, int* partial, int* total) {
    __shared__ int cache[64];
    __shared__ bool last;
    int t = threadIdx.x, mine = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        mine += in[i];
    cache[t] = mine;
    for (int k = 32; k > 0; k /= 2) {
        __syncthreads();
        if (t < k)
            cache[t] += cache[t + k];
    }
    if (t == 0) {
        partial[blockIdx.x] = cache[0];
        __threadfence();
        last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        __threadfence();
        int all = 0;
        for (int b = 0; b < gridDim.x; b++)
            all += ((volatile int*)partial)[b];
        *total = all;
        __threadfence_system();
    }
    __threadfence_block();
}

int main() {
    const int n = 10000;
    int *in, *partial, *total;
    cudaMallocManaged(&in, n * sizeof(int));
    cudaMallocManaged(&partial, 20 * sizeof(int));
    cudaMallocManaged(&total, sizeof(int));
    for (int i = 0; i < n; i++)
        in[i] = i % 17;
    for (int blocks : {1, 7, 20}) {
        *total = -1;
        sum<<<blocks, 64>>>(in, n, partial, total);
        cudaDeviceSynchronize();
        printf("%d\n", *total);
    }
    cudaFree(in);
    cudaFree(partial);
    cudaFree(total);
}
