// __device__ variables: initial values, copies to and from them, their address and size, changes
// that last.
#include <cstdio>

__device__ int total = 100;
__device__ double grid[2][3];
static __device__ unsigned char flags[4] = {1, 2, 3, 4};

__global__ void step(int by) {
    total += by;
    grid[1][2] = total;
    flags[3] += 1;
}

__global__ void set(int* where) {
    *where = 7;
}

int main() {
    step<<<1, 1>>>(1);
    step<<<1, 1>>>(10);
    int t;
    double g[2][3];
    unsigned char f[4];
    cudaMemcpyFromSymbol(&t, total, sizeof(t));
    cudaMemcpyFromSymbol(g, grid, sizeof(g));
    cudaMemcpyFromSymbol(f, flags, sizeof(f));
    printf("%d %.0f %.0f %d\n", t, g[0][0], g[1][2], f[3]);
    int* address;
    size_t size;
    cudaGetSymbolAddress((void**)&address, total);
    cudaGetSymbolSize(&size, grid);
    set<<<1, 1>>>(address);
    cudaMemcpyFromSymbol(&t, total, sizeof(t), 0, cudaMemcpyDeviceToHost);
    printf("%d, size %zu\n", t, size);
    t = 40;
    cudaMemcpyToSymbol(total, &t, sizeof(t));
    step<<<1, 1>>>(2);
    cudaMemcpyFromSymbol(&t, total, sizeof(t));
    printf("%d\n", t);
}
