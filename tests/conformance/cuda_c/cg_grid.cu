// Cooperative groups: a barrier over the whole grid, in a cooperative launch.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

__global__ void diffuse(int* a, int* b, int n, int steps) {
    cg::grid_group grid = cg::this_grid();
    for (int s = 0; s < steps; s++) {
        int* from = s % 2 ? b : a;
        int* to = s % 2 ? a : b;
        for (int i = grid.thread_rank(); i < n; i += grid.size())
            to[i] = from[(i + n - 1) % n] + from[(i + 1) % n];
        grid.sync();
    }
    if (grid.thread_rank() == 0 && !grid.is_valid())
        a[0] = -1;
}

int main() {
    int n = 500, steps = 6, *a, *b;
    cudaMallocManaged(&a, n * sizeof(int));
    cudaMallocManaged(&b, n * sizeof(int));
    for (int i = 0; i < n; i++)
        a[i] = i == 0, b[i] = -7;
    void* arguments[] = {&a, &b, &n, &steps};
    cudaError_t e = cudaLaunchCooperativeKernel((void*)diffuse, dim3(4), dim3(64), arguments, 0, 0);
    printf("%s %s\n", cudaGetErrorName(e), cudaGetErrorName(cudaDeviceSynchronize()));
    for (int i = n - 7; i < n + 8; i++)
        printf("%d ", a[i % n]);
    printf("\n");
    cudaFree(a);
    cudaFree(b);
}
