// expect: [wrong-device]; line 10; mode: fast; devices: 2
// A peer copy names the devices in the wrong order.
#include <cuda_runtime.h>

int main() {
    float *a, *b;
    cudaMalloc(&a, 400);
    cudaSetDevice(1);
    cudaMalloc(&b, 400);
    cudaMemcpyPeer(a, 1, b, 0, 400);
    cudaFree(a);
    cudaFree(b);
}
