// expect: grid-sync; line 8; mode: fast
// A barrier over the grid in an ordinary launch.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;
__global__ void two_steps(int* data) {
    data[blockIdx.x] = 1;
    cg::this_grid().sync();
    data[blockIdx.x] += data[(blockIdx.x + 1) % gridDim.x];
}
int main() {
    int* data;
    cudaMalloc(&data, 4 * sizeof(int));
    two_steps<<<4, 1>>>(data);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(data);
}
