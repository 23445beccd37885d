// expect: [stream-race]; line 26; mode: check; devices: 2
// The event is recorded before the kernel, so waiting for it means nothing.
#include <cuda_runtime.h>

__global__ void fill(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = i;
}

int main() {
    const int n = 1000;
    float *a, *b;
    cudaStream_t here, there;
    cudaEvent_t made;
    cudaMalloc(&a, n * sizeof(float));
    cudaStreamCreate(&here);
    cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
    cudaSetDevice(1);
    cudaMalloc(&b, n * sizeof(float));
    cudaStreamCreate(&there);
    cudaSetDevice(0);
    cudaEventRecord(made, here);
    fill<<<4, 256, 0, here>>>(a, n);
    cudaStreamWaitEvent(there, made, 0);
    cudaMemcpyPeerAsync(b, 1, a, 0, n * sizeof(float), there);
    cudaStreamSynchronize(there);
    cudaStreamSynchronize(here);
    cudaFree(a);
    cudaFree(b);
}
