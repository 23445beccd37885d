// CUDA graphs by stream capture: nothing runs while capturing, then the graph runs as often as
// wanted.
#include <cstdio>

__global__ void add(int* x, int by) {
    *x += by;
}
__global__ void twice(int* x) {
    *x *= 2;
}

int main() {
    int *x, host = -1;
    cudaMalloc(&x, sizeof(int));
    cudaMemset(x, 0, sizeof(int));
    cudaDeviceSynchronize();
    cudaStream_t stream, side;
    cudaEvent_t fork, join;
    cudaStreamCreate(&stream);
    cudaStreamCreate(&side);
    cudaEventCreate(&fork);
    cudaEventCreate(&join);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    add<<<1, 1, 0, stream>>>(x, 1);
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(side, fork);
    twice<<<1, 1, 0, side>>>(x);
    cudaEventRecord(join, side);
    cudaStreamWaitEvent(stream, join);
    add<<<1, 1, 0, stream>>>(x, 3);
    cudaMemcpyAsync(&host, x, sizeof(int), cudaMemcpyDeviceToHost, stream);
    cudaStreamIsCapturing(stream, &status);
    printf("%d\n", status == cudaStreamCaptureStatusActive);
    cudaStreamEndCapture(stream, &graph);
    printf("%d\n", host);
    size_t nodes = 0;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    printf("%zu nodes\n", nodes);
    printf("%s\n", cudaGetErrorName(cudaGraphInstantiate(&exec, graph, 0)));
    for (int i = 0; i < 4; i++) {
        cudaGraphLaunch(exec, stream);
        cudaStreamSynchronize(stream);
        printf("%d ", host);
    }
    printf("\n");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaEventDestroy(fork);
    cudaEventDestroy(join);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(side);
    cudaFree(x);
}
