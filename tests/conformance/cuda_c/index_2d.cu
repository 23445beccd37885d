// Two-dimensional blocks and grids: x is the fastest axis, for threads and for blocks.
#include <cstdio>

__global__ void where(int* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || col >= cols)
        return;
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    int thread = threadIdx.y * blockDim.x + threadIdx.x;
    out[row * cols + col] = 10 * block + thread;
}

int main() {
    const int rows = 5, cols = 7;
    int host[rows * cols], *device;
    cudaMalloc(&device, sizeof(host));
    dim3 block(3, 2), grid((cols + 2) / 3, (rows + 1) / 2);
    where<<<grid, block>>>(device, rows, cols);
    cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++)
            printf("%3d", host[r * cols + c]);
        printf("\n");
    }
    cudaFree(device);
}
