// An inclusive scan of one block: warp shuffles inside warps, shared memory between them.
#include <cstdio>

__global__ void scan(int* data, int n) {
    __shared__ int totals[32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int value = t < n ? data[t] : 0;
    for (int k = 1; k < 32; k *= 2) {
        int other = __shfl_up_sync(0xffffffff, value, k);
        if (lane >= k)
            value += other;
    }
    if (lane == 31)
        totals[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int total = lane < blockDim.x / 32 ? totals[lane] : 0;
        for (int k = 1; k < 32; k *= 2) {
            int other = __shfl_up_sync(0xffffffff, total, k);
            if (lane >= k)
                total += other;
        }
        totals[lane] = total;
    }
    __syncthreads();
    if (warp > 0)
        value += totals[warp - 1];
    if (t < n)
        data[t] = value;
}

int main() {
    const int n = 1000;
    int* data;
    cudaMallocManaged(&data, n * sizeof(int));
    for (int i = 0; i < n; i++)
        data[i] = i % 9 - 2;
    scan<<<1, 1024>>>(data, n);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", data[0], data[31], data[32], data[999]);
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += data[i];
    printf("%ld\n", sum);
    cudaFree(data);
}
