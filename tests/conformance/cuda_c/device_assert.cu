// assert: nothing happens when it holds; when it fails the kernel ends with a sticky
// cudaErrorAssert.
#include <cassert>
#include <cstdio>

__global__ void check(int limit) {
    assert((int)threadIdx.x < limit && "too many threads");
}

int main() {
    check<<<1, 8>>>(8);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    check<<<1, 8>>>(7);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    void* p = nullptr;
    printf("%s\n", cudaGetErrorName(cudaMalloc(&p, 4)));
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
}
