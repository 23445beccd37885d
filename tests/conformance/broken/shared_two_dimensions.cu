// expect: out-of-bounds; line 7; mode: check
// The second index of a two-dimensional tile runs past its row.
#include <cstdio>
__global__ void fill(int* out) {
    __shared__ int tile[8][8];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x + 1] = x;
    __syncthreads();
    out[y * 8 + x] = tile[y][x == 0 ? 1 : x];
}
int main() {
    int* out;
    cudaMalloc(&out, 64 * sizeof(int));
    fill<<<1, dim3(8, 8)>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
