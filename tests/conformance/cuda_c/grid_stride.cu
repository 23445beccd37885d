// A grid-stride loop gives the same answer for any grid.
#include <cstdio>

__global__ void square(long long* data, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] = (long long)i * i;
}

int main() {
    const int n = 1000;
    long long* data;
    cudaMallocManaged(&data, n * sizeof(long long));
    int grids[] = {1, 3, 50}, blocks[] = {1, 96, 1024};
    for (int g : grids)
        for (int b : blocks) {
            for (int i = 0; i < n; i++)
                data[i] = -1;
            square<<<g, b>>>(data, n);
            cudaDeviceSynchronize();
            long long sum = 0;
            for (int i = 0; i < n; i++)
                sum += data[i];
            printf("%d x %d: %lld\n", g, b, sum);
        }
    cudaFree(data);
}
