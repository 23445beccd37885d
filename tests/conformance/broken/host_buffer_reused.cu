// expect: [too-early]; line 13; mode: check; devices: 2
// Host code fills a pinned buffer again while the copy from it may still run.
#include <cuda_runtime.h>

int main() {
    float *a, *host;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMallocHost(&host, 400);
    cudaMalloc(&a, 400);
    for (int part = 0; part < 2; part++) {
        for (int i = 0; i < 100; i++)
            host[i] = part;
        cudaMemcpyAsync(a, host, 400, cudaMemcpyHostToDevice, stream);
    }
    cudaStreamSynchronize(stream);
    cudaFree(a);
    cudaFreeHost(host);
}
