// What the runtime knows of a pointer; read-only loads; a 64-bit unsigned offset.
#include <cstdio>
#include <cstdlib>

__global__ void read(const int* __restrict__ in, int* __restrict__ out, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = __ldg(&in[n - 1 - i]) + __ldg(in + i) * 1000;
}

static const char* kind(const void* p) {
    cudaPointerAttributes a;
    if (cudaPointerGetAttributes(&a, p) != cudaSuccess)
        return "error";
    switch (a.type) {
        case cudaMemoryTypeHost:
            return "host";
        case cudaMemoryTypeDevice:
            return "device";
        case cudaMemoryTypeManaged:
            return "managed";
        default:
            return "unregistered";
    }
}

int main() {
    int *device, *managed, *pinned, *plain = (int*)malloc(8 * sizeof(int)), host[8];
    cudaMalloc(&device, 8 * sizeof(int));
    cudaMallocManaged(&managed, 8 * sizeof(int));
    cudaMallocHost(&pinned, 8 * sizeof(int));
    printf("%s %s %s %s %s\n", kind(device), kind(device + 3), kind(managed), kind(pinned),
           kind(plain));
    for (int i = 0; i < 8; i++)
        managed[i] = i;
    read<<<2, 5>>>(managed, device, 8);
    cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
    for (int x : host)
        printf("%d ", x);
    printf("\n");
    cudaFree(device);
    cudaFree(managed);
    cudaFreeHost(pinned);
    free(plain);
}
