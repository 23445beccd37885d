// clock64, clock and globaltimer run forwards.
#include <cstdio>

__global__ void work(int* out, long long* sink) {
    long long begin = clock64();
    clock_t short_begin = clock();
    long long sum = 0;
    for (int i = 0; i < 10000; i++)
        sum += i * (sum & 1);
    *sink = sum;
    __threadfence();
    long long end = clock64();
    out[0] = end > begin;
    out[1] = clock() != short_begin;
    __nanosleep(100);
    out[2] = clock64() >= end;
}

int main() {
    int* out;
    long long* sink;
    cudaMallocManaged(&out, 3 * sizeof(int));
    cudaMallocManaged(&sink, sizeof(long long));
    work<<<1, 1>>>(out, sink);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", out[0], out[1], out[2]);
    cudaFree(out);
    cudaFree(sink);
}
