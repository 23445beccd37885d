// expect: stack-overflow; line 5 or 6; mode: fast
// A recursion without end.
#include <cstdio>
__device__ int depth(volatile int* p, int n) {
    volatile int local[64];
    local[n % 64] = n;
    return *p == 12345 ? n : depth(p, n + 1) + local[(n + 1) % 64];
}
__global__ void recurse(int* p) {
    *p = depth(p, 0);
}
int main() {
    int* p;
    cudaMalloc(&p, sizeof(int));
    cudaMemset(p, 0, sizeof(int));
    recurse<<<1, 1>>>(p);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(p);
}
