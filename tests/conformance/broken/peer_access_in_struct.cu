// expect: [peer-access]; line 12; mode: check; devices: 2
// The pointer to the other device is hidden in a struct, and only one thread follows it.
#include <cuda_runtime.h>

struct Ring {
    float* mine;
    float* next;
};
__global__ void push(Ring ring, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == n - 1)
        ring.next[0] = ring.mine[i];
}

int main() {
    const int n = 300;
    Ring ring;
    cudaSetDevice(1);
    cudaMalloc(&ring.next, n * sizeof(float));
    cudaSetDevice(0);
    cudaMalloc(&ring.mine, n * sizeof(float));
    cudaMemset(ring.mine, 0, n * sizeof(float));
    push<<<2, 256>>>(ring, n);
    cudaDeviceSynchronize();
}
