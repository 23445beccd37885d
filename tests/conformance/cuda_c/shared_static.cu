// Static shared memory: each block has its own; two arrays, a two-dimensional padded one and a
// single value.
#include <cstdio>

__global__ void reverse_and_transpose(int* reversed, int* transposed) {
    __shared__ int line[16];
    __shared__ int tile[4][4 + 1];
    __shared__ int base;
    int t = threadIdx.x, row = t / 4, col = t % 4;
    if (t == 5)
        base = 100 * blockIdx.x;
    line[t] = t;
    tile[row][col] = 10 * row + col;
    __syncthreads();
    reversed[blockIdx.x * 16 + t] = base + line[15 - t];
    transposed[blockIdx.x * 16 + t] = base + tile[col][row];
}

int main() {
    int *reversed, *transposed;
    cudaMallocManaged(&reversed, 48 * sizeof(int));
    cudaMallocManaged(&transposed, 48 * sizeof(int));
    reverse_and_transpose<<<3, 16>>>(reversed, transposed);
    cudaDeviceSynchronize();
    for (int b = 0; b < 3; b++) {
        for (int i = 0; i < 16; i++)
            printf("%d ", reversed[b * 16 + i]);
        printf("\n");
        for (int i = 0; i < 16; i++)
            printf("%d ", transposed[b * 16 + i]);
        printf("\n");
    }
    cudaFree(reversed);
    cudaFree(transposed);
}
