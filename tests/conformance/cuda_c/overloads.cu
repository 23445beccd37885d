// Overloaded kernels and device functions, in and out of namespaces.
#include <cstdio>

__device__ int kind(int) {
    return 1;
}
__device__ int kind(float) {
    return 2;
}
__device__ int kind(const char*) {
    return 3;
}
template <typename T>
__device__ int kind(T*) {
    return 4;
}

namespace other {
__device__ int kind(int) {
    return 10;
}
__global__ void show(int* out) {
    *out = kind(1) + ::kind(1);
}
}  // namespace other

__global__ void show(int* out) {
    out[0] = kind(1);
    out[1] = kind(1.0f);
    out[2] = kind("text");
    out[3] = kind(out);
}

__global__ void show(int* out, int offset) {
    *out = kind(offset) + offset;
}
__global__ void show(int* out, float offset) {
    *out = kind(offset) + int(offset);
}

int main() {
    int* out;
    cudaMallocManaged(&out, 4 * sizeof(int));
    show<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
    show<<<1, 1>>>(out, 100);
    cudaDeviceSynchronize();
    printf("%d\n", out[0]);
    show<<<1, 1>>>(out, 200.0f);
    cudaDeviceSynchronize();
    printf("%d\n", out[0]);
    other::show<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    printf("%d\n", out[0]);
    cudaFree(out);
}
