// Blocks that wait for one another through global memory: a chain of resident blocks, each waiting for the one before.
#include <cstdio>

__device__ volatile int ready = 0;

__global__ void chain(int* out) {
    if (threadIdx.x == 0) {
        while (ready != blockIdx.x) {
        }
        out[blockIdx.x] = (blockIdx.x ? out[blockIdx.x - 1] : 0) + blockIdx.x;
        __threadfence();
        ready = blockIdx.x + 1;
    }
    __syncthreads();
}

int main() {
    int *out, host[8];
    cudaMalloc(&out, sizeof(host));
    chain<<<8, 64>>>(out);
    cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
    for (int x : host) printf("%d ", x);
    printf("\n");
    cudaFree(out);
}
