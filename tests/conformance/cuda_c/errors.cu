// Error codes: what the last-error calls return, which errors stay, what a bad launch or call
// gives.
#include <cstdio>

__global__ void nothing() {}

static void show(const char* what, cudaError_t e) {
    printf("%s: %d %s\n", what, (int)e, cudaGetErrorName(e));
}

int main() {
    show("at the start", cudaGetLastError());
    nothing<<<1, 1025>>>();
    show("peek", cudaPeekAtLastError());
    show("get", cudaGetLastError());
    show("get again", cudaGetLastError());
    nothing<<<0, 32>>>();
    show("empty grid", cudaGetLastError());
    nothing<<<1, 0>>>();
    show("empty block", cudaGetLastError());
    nothing<<<1, dim3(1, 1, 65)>>>();
    show("too deep", cudaGetLastError());
    nothing<<<dim3(1, 65536), 1>>>();
    show("too many blocks in y", cudaGetLastError());
    nothing<<<1, 1, 1 << 20>>>();
    show("too much shared memory", cudaGetLastError());
    nothing<<<1, 1>>>();
    show("a launch that works", cudaGetLastError());
    nothing<<<1, 2000>>>();
    nothing<<<1, 1>>>();
    show("a launch that works leaves an error before it", cudaGetLastError());
    void* p = nullptr;
    show("malloc", cudaMalloc(&p, ~size_t(0) / 4));
    show("the last error too", cudaGetLastError());
    show("free of what is no allocation", cudaFree(&p));
    cudaGetLastError();
    show("memcpy direction", cudaMemcpy(p, p, 4, (cudaMemcpyKind)77));
    cudaGetLastError();
    show("set device", cudaSetDevice(-1));
    cudaGetLastError();
    nothing<<<1, 2000>>>();
    show("synchronize after a refused launch", cudaDeviceSynchronize());
    show("which is still the last error", cudaGetLastError());
    printf("%s; %s\n", cudaGetErrorString(cudaSuccess),
           cudaGetErrorString(cudaErrorInvalidConfiguration));
    printf("%s; %s\n", cudaGetErrorString(cudaErrorMemoryAllocation),
           cudaGetErrorName((cudaError_t)12345));
}
