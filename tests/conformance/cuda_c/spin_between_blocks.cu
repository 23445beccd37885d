// Blocks that wait for one another through global memory: each takes a ticket and waits for the
// ticket before, the way that single-pass scans do, so that it works in whatever order the blocks
// start.
#include <cstdio>

__device__ unsigned tickets = 0;
__device__ volatile unsigned ready = 0;

__global__ void chain(int* out) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0)
        ticket = atomicAdd(&tickets, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        while (ready != ticket) {}
        __threadfence();
        out[ticket] = (ticket ? out[ticket - 1] : 0) + ticket;
        __threadfence();
        ready = ticket + 1;
    }
}

int main() {
    int *out, host[8];
    cudaMalloc(&out, sizeof(host));
    chain<<<8, 64>>>(out);
    cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
    for (int x : host)
        printf("%d ", x);
    printf("\n");
    cudaFree(out);
}
