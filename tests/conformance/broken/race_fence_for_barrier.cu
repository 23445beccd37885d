// expect: race; line 9; mode: check
// One warp stores, then all read. Its fence orders what each of its threads does; the other warp
// does not wait for it.
#include <cstdio>
__global__ void shift(int* out, int* buffer, const int* in) {
    if (threadIdx.x < 32)
        buffer[threadIdx.x] = in[threadIdx.x];
    __threadfence();
    out[threadIdx.x] = buffer[threadIdx.x % 32];
}
int main() {
    int *in, *buffer, *out;
    cudaMalloc(&in, 32 * sizeof(int));
    cudaMalloc(&buffer, 32 * sizeof(int));
    cudaMalloc(&out, 64 * sizeof(int));
    cudaMemset(in, 0, 32 * sizeof(int));
    cudaMemset(buffer, 0, 32 * sizeof(int));
    shift<<<1, 64>>>(out, buffer, in);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(buffer);
    cudaFree(out);
}
