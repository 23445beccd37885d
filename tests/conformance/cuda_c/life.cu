// The game of life on a torus, two buffers swapped between launches.
#include <cstdio>
#include <utility>

__global__ void step(const unsigned char* from, unsigned char* to, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n)
        return;
    int neighbours = -from[y * n + x];
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            neighbours += from[(y + dy + n) % n * n + (x + dx + n) % n];
    to[y * n + x] = neighbours == 3 || (neighbours == 2 && from[y * n + x]);
}

int main() {
    const int n = 10;
    unsigned char host[n * n] = {}, *a, *b;
    int glider[5][2] = {{0, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}};
    for (auto& cell : glider)
        host[cell[0] * n + cell[1]] = 1;
    cudaMalloc(&a, n * n);
    cudaMalloc(&b, n * n);
    cudaMemcpy(a, host, n * n, cudaMemcpyHostToDevice);
    for (int i = 0; i < 44; i++) {
        step<<<dim3(2, 3), dim3(6, 4)>>>(a, b, n);
        std::swap(a, b);
    }
    cudaMemcpy(host, a, n * n, cudaMemcpyDeviceToHost);
    for (int y = 0; y < n; y++) {
        for (int x = 0; x < n; x++)
            putchar(host[y * n + x] ? '#' : '.');
        putchar('\n');
    }
    cudaFree(a);
    cudaFree(b);
}
