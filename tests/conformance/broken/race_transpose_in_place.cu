// expect: race; line 7; mode: check
// Both threads of a pair exchange the same two elements.
#include <cstdio>
__global__ void transpose(float* a, int n) {
    int x = threadIdx.x, y = threadIdx.y;
    if (x != y) {
        float v = a[y * n + x];
        a[y * n + x] = a[x * n + y];
        a[x * n + y] = v;
    }
}
int main() {
    float* a;
    cudaMalloc(&a, 64 * sizeof(float));
    cudaMemset(a, 0, 64 * sizeof(float));
    transpose<<<1, dim3(8, 8)>>>(a, 8);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(a);
}
