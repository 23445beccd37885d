// expect: [too-early]; line 17; mode: check; devices: 2
// cudaDeviceSynchronize waits for the current device only.
#include <cuda_runtime.h>

int main() {
    float *a, *host;
    cudaMallocHost(&host, 400);
    cudaStream_t stream;
    cudaSetDevice(1);
    cudaMalloc(&a, 400);
    cudaMemset(a, 0, 400);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
    cudaMemcpyAsync(host, a, 400, cudaMemcpyDeviceToHost, stream);
    cudaSetDevice(0);
    cudaDeviceSynchronize();
    int zero = host[7] == 0;
    cudaFree(a);
    cudaFreeHost(host);
    return 1 - zero;
}
