// expect: null-pointer; line 5; mode: fast
// The memory was never allocated.
#include <cstdio>
__global__ void set(int* out) {
    out[threadIdx.x] = 1;
}
int main() {
    int* out = nullptr;
    set<<<1, 32>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
