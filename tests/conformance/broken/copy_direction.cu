// expect: copy-direction; line 12; mode: fast
// The result is copied back with the direction of the way there.
#include <cstdio>
__global__ void set(int* out) {
    *out = 42;
}
int main() {
    int *out, host = 0;
    cudaMalloc(&out, sizeof(int));
    set<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    cudaMemcpy(&host, out, sizeof(int), cudaMemcpyHostToDevice);
    printf("%d\n", host);
    cudaFree(out);
}
