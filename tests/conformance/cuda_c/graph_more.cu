// Graphs: several launches of one graph with changing memory, memset and host nodes, capture of
// many kernels, queries.
#include <cstdio>

__global__ void axpy(float* y, const float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}

void CUDART_CB count(void* p) {
    ++*(int*)p;
}

int main() {
    const int n = 100;
    float *x, *y, host[n];
    int calls = 0;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    for (int i = 0; i < n; i++)
        host[i] = i;
    cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaMemsetAsync(y, 0, n * sizeof(float), stream);
    for (int k = 1; k <= 10; k++)
        axpy<<<4, 32, 0, stream>>>(y, x, k, n);
    cudaLaunchHostFunc(stream, count, &calls);
    printf("%s\n", cudaGetErrorName(cudaStreamEndCapture(stream, &graph)));
    cudaStreamCaptureStatus status;
    cudaStreamIsCapturing(stream, &status);
    size_t nodes;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    printf("%d %zu %d\n", status == cudaStreamCaptureStatusNone, nodes, calls);
    cudaGraphInstantiate(&exec, graph, 0);
    for (int k = 0; k < 3; k++)
        cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    cudaMemcpy(host, y, sizeof(host), cudaMemcpyDeviceToHost);
    printf("%g %g %d\n", host[1], host[99], calls);
    for (int i = 0; i < n; i++)
        host[i] = 1;
    cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    cudaMemcpy(host, y, sizeof(host), cudaMemcpyDeviceToHost);
    printf("%g %g %d\n", host[1], host[99], calls);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    cudaFree(x);
    cudaFree(y);
}
