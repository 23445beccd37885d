// malloc, free, new, delete and memcpy, memset on the device.
#include <cstdio>
#include <cstring>

__global__ void work(int* out) {
    int t = threadIdx.x;
    int* mine = (int*)malloc((t + 1) * sizeof(int));
    for (int i = 0; i <= t; i++)
        mine[i] = i;
    int* copy = new int[t + 1];
    memcpy(copy, mine, (t + 1) * sizeof(int));
    memset(mine, 0, (t + 1) * sizeof(int));
    int sum = 0;
    for (int i = 0; i <= t; i++)
        sum += copy[i] + mine[i];
    free(mine);
    delete[] copy;
    out[t] = sum;
}

int main() {
    int* out;
    cudaMallocManaged(&out, 40 * sizeof(int));
    work<<<1, 40>>>(out);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    printf("%d %d %d\n", out[0], out[5], out[39]);
    cudaFree(out);
}
