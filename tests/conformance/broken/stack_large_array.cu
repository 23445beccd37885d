// expect: stack-overflow; line 5 or 7 or 9; mode: fast
// A local array of 64 MiB, where a GPU's thread has 512 KiB at most.
#include <cstdio>
__global__ void sort(int* data, int n) {
    volatile int local[16 << 20];
    for (int i = 0; i < n; i++)
        local[i * 4096] = data[i];
    for (int i = 0; i < n; i++)
        data[i] = local[(n - 1 - i) * 4096];
}
int main() {
    int* data;
    cudaMalloc(&data, 64 * sizeof(int));
    cudaMemset(data, 0, 64 * sizeof(int));
    sort<<<1, 1>>>(data, 64);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(data);
}
