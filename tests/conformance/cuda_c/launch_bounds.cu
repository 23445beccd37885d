// __launch_bounds__ is accepted in every form, and a launch beyond it is refused.
#include <cstdio>

template <int B>
__global__ void __launch_bounds__(B) one(int* out) {
    atomicAdd(out, 1);
}

__global__ __launch_bounds__(128, 2) void two(int* __restrict__ out) {
    atomicAdd(out, 100);
}

int main() {
    int* out;
    cudaMallocManaged(&out, sizeof(int));
    *out = 0;
    one<64><<<1, 64>>>(out);
    two<<<1, 128>>>(out);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    printf("%d\n", *out);
    one<64><<<1, 65>>>(out);
    printf("%s\n", cudaGetLastError() == cudaSuccess ? "launched" : "refused");
    cudaDeviceSynchronize();
    printf("%d\n", *out);
    cudaFree(out);
}
