// Device properties: only what is the same on every machine of the last ten years.
#include <cstdio>
#include <cstring>

int main() {
    int count = 0, current = -1, warp = 0, threads = 0, value = 0;
    cudaGetDeviceCount(&count);
    cudaGetDevice(&current);
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, 0);
    printf("%d %d\n", count >= 1, current);
    printf("%d %d %d %d %d\n", p.warpSize, p.maxThreadsPerBlock, p.maxThreadsDim[0],
           p.maxThreadsDim[1], p.maxThreadsDim[2]);
    printf("%d %d %d\n", p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]);
    printf("%zu %zu %d\n", p.sharedMemPerBlock, p.totalConstMem, p.regsPerBlock);
    printf("%d %d %d %d\n", strlen(p.name) > 0, p.multiProcessorCount > 0, p.major >= 5,
           p.totalGlobalMem > (1u << 28));
    cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0);
    cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, 0);
    cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0);
    printf("%d %d %d\n", warp, threads, value == p.multiProcessorCount);
    size_t free_bytes, total;
    cudaMemGetInfo(&free_bytes, &total);
    printf("%d\n", free_bytes <= total && free_bytes > 0);
    int runtime, driver;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    printf("%d %d\n", runtime >= 11000, driver >= 11000);
    printf("%s %s\n", cudaGetErrorName(cudaSetDevice(0)), cudaGetErrorName(cudaSetDevice(1000)));
    cudaGetLastError();
}
