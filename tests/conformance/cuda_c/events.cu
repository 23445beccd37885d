// Events: order and elapsed time; the errors of events that cannot be timed.
#include <cstdio>

__global__ void spin(long long* sink, int n) {
    long long s = 0;
    for (int i = 0; i < n; i++)
        s += i ^ s;
    *sink = s;
}

int main() {
    long long* sink;
    cudaMalloc(&sink, sizeof(long long));
    cudaEvent_t begin, end, untimed;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming);
    float ms = -1;
    printf("%s\n", cudaGetErrorName(cudaEventElapsedTime(&ms, begin, end)));  // never recorded
    cudaEventRecord(begin);
    spin<<<1, 1>>>(sink, 20000);
    cudaEventRecord(end);
    cudaEventRecord(untimed);
    cudaEventSynchronize(end);
    printf("%s", cudaGetErrorName(cudaEventElapsedTime(&ms, begin, end)));
    printf(" %d\n", ms > 0 && ms < 10000);
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(cudaEventElapsedTime(&ms, begin, untimed)));
    cudaGetLastError();
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaEventDestroy(untimed);
    cudaFree(sink);
}
