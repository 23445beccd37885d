// flags: -rdc=true
// Kernels that launch kernels: children run, in order within a stream, before the parent grid is
// complete.
#include <cstdio>

__global__ void child(int* out, int base) {
    out[base + threadIdx.x] += base + threadIdx.x;
}

__global__ void parent(int* out) {
    child<<<1, 4>>>(out, 4 * threadIdx.x);
}

__global__ void halve(int* out, int lo, int n) {
    if (n == 1) {
        out[lo] = out[lo] * 2;
        return;
    }
    halve<<<1, 1>>>(out, lo, n / 2);
    halve<<<1, 1>>>(out, lo + n / 2, n - n / 2);
}

int main() {
    int* out;
    cudaMallocManaged(&out, 12 * sizeof(int));
    for (int i = 0; i < 12; i++)
        out[i] = 100;
    parent<<<1, 3>>>(out);
    halve<<<1, 1>>>(out, 0, 12);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    for (int i = 0; i < 12; i++)
        printf("%d ", out[i]);
    printf("\n");
    cudaFree(out);
}
