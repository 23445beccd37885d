// expect: misaligned; line 5; mode: check
// Bytes are read as an int at an odd place.
#include <cstdio>
__global__ void read(const char* bytes, int* out) {
    out[threadIdx.x] = *reinterpret_cast<const int*>(bytes + 5 * threadIdx.x);
}
int main() {
    char* bytes;
    int* out;
    cudaMalloc(&bytes, 64);
    cudaMalloc(&out, 8 * sizeof(int));
    cudaMemset(bytes, 0, 64);
    read<<<1, 8>>>(bytes, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(bytes);
    cudaFree(out);
}
