// memset and memcpy in a kernel, on shared and on global memory.
#include <cstdio>
#include <cstring>

__global__ void functions(int* out) {
    __shared__ int zero[32];
    __shared__ int copy[32];
    __shared__ int numbers[32];
    int i = threadIdx.x;
    if (i == 0)
        memset(zero, 0, sizeof zero);
    numbers[i] = i;
    __syncthreads();
    if (i == 0)
        memcpy(copy, numbers, sizeof copy);
    __syncthreads();
    int sum = zero[i] + 100 * copy[i];
    memcpy(&out[i], &sum, sizeof sum);
}

int main() {
    int *out, sum = 0;
    cudaMallocManaged(&out, 32 * sizeof(int));
    functions<<<1, 32>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; i++)
        sum += out[i];
    printf("%d %d %d\n", out[0], out[31], sum);
    cudaFree(out);
}
