// expect: unchecked-launch; line 10; mode: fast
// The launch fails and nobody asks: the output is what was there before.
#include <cstdio>
__global__ void set(int* out) {
    out[threadIdx.x] = 1;
}
int main() {
    int *out, host[4];
    cudaMalloc(&out, 2000 * sizeof(int));
    set<<<1, 2000>>>(out);
    cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
    printf("copied\n");
    cudaFree(out);
}
