// A kernel node of an executable graph gets other parameters; the graph itself keeps its own.
#include <cstdio>

__global__ void add(int* sum, int by) {
    atomicAdd(sum, by);
}

int main() {
    int* sum;
    cudaMallocManaged(&sum, sizeof(int));
    *sum = 0;
    int by = 1;
    void* arguments[] = {&sum, &by};
    cudaKernelNodeParams params = {};
    params.func = (void*)add;
    params.gridDim = 2;
    params.blockDim = 32;
    params.kernelParams = arguments;
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t changed, first;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params);
    cudaGraphInstantiate(&changed, graph, 0);
    for (by = 10; by <= 1000; by *= 10) {
        cudaGraphLaunch(changed, 0);
        cudaDeviceSynchronize();
        printf("%d\n", *sum);
        cudaGraphExecKernelNodeSetParams(changed, node, &params);
    }
    cudaGraphInstantiate(&first, graph, 0);
    cudaGraphLaunch(first, 0);
    printf("%s ", cudaGetErrorName(cudaDeviceSynchronize()));
    printf("%d\n", *sum);
    cudaGraphExecDestroy(changed);
    cudaGraphExecDestroy(first);
    cudaGraphDestroy(graph);
    cudaFree(sum);
}
