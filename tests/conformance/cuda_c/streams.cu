// Streams: work of one stream stays in order, streams wait for events, callbacks run, queries
// answer.
#include <cstdio>

__global__ void add(int* x, int by) {
    *x += by;
}
__global__ void multiply(int* x, int by) {
    *x *= by;
}
__global__ void copy(int* to, const int* from) {
    *to = *from;
}

void CUDART_CB count(void* p) {
    *(int*)p += 1;
}
void CUDART_CB note(cudaStream_t, cudaError_t status, void* p) {
    *(int*)p += status == cudaSuccess ? 10 : 1000;
}

int main() {
    int *a, *b, called = 0;
    cudaMalloc(&a, sizeof(int));
    cudaMalloc(&b, sizeof(int));
    cudaStream_t s1, s2;
    cudaEvent_t ready;
    cudaStreamCreate(&s1);
    cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
    cudaMemsetAsync(a, 0, sizeof(int), s1);
    add<<<1, 1, 0, s1>>>(a, 3);
    multiply<<<1, 1, 0, s1>>>(a, 7);
    cudaLaunchHostFunc(s1, count, &called);
    cudaEventRecord(ready, s1);
    cudaStreamWaitEvent(s2, ready, 0);
    copy<<<1, 1, 0, s2>>>(b, a);
    cudaStreamAddCallback(s2, note, &called, 0);
    add<<<1, 1, 0, s2>>>(b, 100);
    int host = 0;
    cudaMemcpyAsync(&host, b, sizeof(int), cudaMemcpyDeviceToHost, s2);
    cudaStreamSynchronize(s2);
    printf("%d %d\n", host, called);
    cudaStreamSynchronize(s1);
    printf("%s %s\n", cudaGetErrorName(cudaStreamQuery(s1)),
           cudaGetErrorName(cudaEventQuery(ready)));
    int least, greatest;
    cudaDeviceGetStreamPriorityRange(&least, &greatest);
    cudaStream_t s3;
    printf("%s %d\n",
           cudaGetErrorName(cudaStreamCreateWithPriority(&s3, cudaStreamDefault, greatest)),
           greatest <= least);
    cudaStreamDestroy(s1);
    cudaStreamDestroy(s2);
    cudaStreamDestroy(s3);
    cudaEventDestroy(ready);
    cudaFree(a);
    cudaFree(b);
}
