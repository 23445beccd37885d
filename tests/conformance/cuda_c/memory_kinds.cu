// Pinned, mapped, registered, managed, pitched and stream-ordered memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void fill(int* p, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = value + i;
}

__global__ void rows(char* p, size_t pitch, int width, int height) {
    int x = threadIdx.x, y = threadIdx.y;
    if (x < width && y < height)
        ((float*)(p + y * pitch))[x] = 10 * y + x;
}

int main() {
    const int n = 100;
    int *pinned, *mapped, *mapped_device, *managed, *pooled, host[n];
    cudaMallocHost(&pinned, n * sizeof(int));
    cudaHostAlloc(&mapped, n * sizeof(int), cudaHostAllocMapped);
    cudaHostGetDevicePointer(&mapped_device, mapped, 0);
    cudaMallocManaged(&managed, n * sizeof(int));
    cudaMallocAsync(&pooled, n * sizeof(int), 0);
    fill<<<1, 128>>>(mapped_device, n, 1000);
    fill<<<1, 128>>>(managed, n, 2000);
    fill<<<1, 128>>>(pooled, n, 3000);
    cudaMemcpyAsync(pinned, pooled, n * sizeof(int), cudaMemcpyDeviceToHost, 0);
    cudaFreeAsync(pooled, 0);
#if CUDART_VERSION >= 13000
    cudaMemPrefetchAsync(managed, n * sizeof(int), cudaMemLocation{cudaMemLocationTypeHost, 0}, 0,
                         0);
#else
    cudaMemPrefetchAsync(managed, n * sizeof(int), cudaCpuDeviceId, 0);
#endif
    cudaDeviceSynchronize();
    printf("%d %d %d\n", mapped[99], managed[99], pinned[99]);

    int* registered = (int*)malloc(n * sizeof(int));
    printf("%s\n", cudaGetErrorName(
                       cudaHostRegister(registered, n * sizeof(int), cudaHostRegisterDefault)));
    memset(registered, 0, n * sizeof(int));
    cudaMemcpy(managed, registered, n * sizeof(int), cudaMemcpyDefault);
    cudaHostUnregister(registered);
    free(registered);
    printf("%d\n", managed[99]);

    char* pitched;
    size_t pitch;
    float back[3][5];
    cudaMallocPitch(&pitched, &pitch, 5 * sizeof(float), 3);
    rows<<<1, dim3(8, 4)>>>(pitched, pitch, 5, 3);
    cudaMemcpy2D(back, 5 * sizeof(float), pitched, pitch, 5 * sizeof(float), 3,
                 cudaMemcpyDeviceToHost);
    printf("%d %d %.0f %.0f\n", pitch >= 5 * sizeof(float), pitch % 16 == 0, back[0][4],
           back[2][3]);
    cudaMemset2D(pitched, pitch, 0, 2 * sizeof(float), 3);
    cudaMemcpy2D(back, 5 * sizeof(float), pitched, pitch, 5 * sizeof(float), 3,
                 cudaMemcpyDeviceToHost);
    printf("%.0f %.0f %.0f\n", back[2][0], back[2][1], back[2][2]);
    cudaMemset(managed, 0x01, 8);
    cudaMemcpy(host, managed, 12, cudaMemcpyDeviceToHost);
    printf("%x %x %x\n", host[0], host[1], host[2]);
    cudaFree(pitched);
    cudaFree(managed);
    cudaFreeHost(mapped);
    cudaFreeHost(pinned);
}
