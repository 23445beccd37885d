// expect: too-much-shared-memory; line 12; mode: fast
// More dynamic shared memory than a block may have without asking.
#include <cstdio>
__global__ void use(float* out) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = 1;
    *out = tile[0];
}
int main() {
    float* out;
    cudaMalloc(&out, sizeof(float));
    use<<<1, 1, 100 * 1024>>>(out);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    cudaFree(out);
}
