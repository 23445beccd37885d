// Graphs in graphs, memory that lives in a graph, and bodies that run by a condition.
#include <cstdio>

__global__ void add(int* p, int value) {
    p[threadIdx.x] += value;
}
__global__ void start(int* memory, int value) {
    memory[threadIdx.x] = value + threadIdx.x;
}
__global__ void take(int* out, const int* memory) {
    out[threadIdx.x] += memory[threadIdx.x];
}
__global__ void step(int* out, cudaGraphConditionalHandle more) {
    if (threadIdx.x == 0) {
        *out += 3;
        cudaGraphSetConditional(more, *out < 20);
    }
}
__global__ void choose(cudaGraphConditionalHandle which, unsigned value) {
    cudaGraphSetConditional(which, value);
}

cudaGraphNode_t kernel(cudaGraph_t g, const cudaGraphNode_t* after, void* f, int n, void** args) {
    cudaKernelNodeParams params = {};
    params.func = f;
    params.gridDim = dim3(1);
    params.blockDim = dim3(n);
    params.kernelParams = args;
    cudaGraphNode_t node;
    cudaGraphAddKernelNode(&node, g, after, after ? 1 : 0, &params);
    return node;
}
void launch(cudaGraph_t graph, int times) {
    cudaGraphExec_t exec;
    cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < times; ++i)
        cudaGraphLaunch(exec, 0);
    cudaDeviceSynchronize();
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}
void child(int* out) {
    cudaGraph_t inner, outer;
    cudaGraphCreate(&inner, 0);
    cudaGraphCreate(&outer, 0);
    int one = 1, ten = 10;
    void *of_one[] = {&out, &one}, *of_ten[] = {&out, &ten};
    cudaGraphNode_t first = kernel(inner, nullptr, (void*)add, 4, of_one);
    kernel(inner, &first, (void*)add, 4, of_one);
    cudaGraphNode_t before = kernel(outer, nullptr, (void*)add, 4, of_ten), node;
    cudaGraphAddChildGraphNode(&node, outer, &before, 1, inner);
    cudaGraphAddChildGraphNode(&node, outer, &node, 1, inner);
    cudaGraphNodeType type;
    cudaGraphNodeGetType(node, &type);
    cudaGraphDestroy(inner);
    launch(outer, 3);
    printf("%d %d\n", out[0], type == cudaGraphNodeTypeGraph);
}
void memory(int* out) {
    cudaGraph_t graph;
    cudaGraphCreate(&graph, 0);
    cudaMemAllocNodeParams params = {};
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = 4 * sizeof(int);
    cudaGraphNode_t allocated, freed;
    cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &params);
    int value = 100;
    void *of_start[] = {&params.dptr, &value}, *of_take[] = {&out, &params.dptr};
    cudaGraphNode_t started = kernel(graph, &allocated, (void*)start, 4, of_start);
    cudaGraphNode_t taken = kernel(graph, &started, (void*)take, 4, of_take);
    cudaGraphAddMemFreeNode(&freed, graph, &taken, 1, params.dptr);
    launch(graph, 2);
    printf("%d %d\n", out[0], out[3]);
}
cudaGraph_t* body(cudaGraph_t graph, const cudaGraphNode_t* after, cudaGraphConditionalHandle h,
                  cudaGraphConditionalNodeType type, unsigned size) {
    cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
    params.conditional.handle = h;
    params.conditional.type = type;
    params.conditional.size = size;
    cudaGraphNode_t node;
    cudaGraphAddNode(&node, graph, after, nullptr, after ? 1 : 0, &params);
    return params.conditional.phGraph_out;
}
void conditions(int* out) {
    cudaGraph_t graph;
    cudaGraphCreate(&graph, 0);
    cudaGraphConditionalHandle more;
    cudaGraphConditionalHandleCreate(&more, graph, 1, cudaGraphCondAssignDefault);
    void* of_step[] = {&out, &more};
    cudaGraph_t loop = body(graph, nullptr, more, cudaGraphCondTypeWhile, 1)[0];
    kernel(loop, nullptr, (void*)step, 1, of_step);
    launch(graph, 1);
    printf("%d\n", *out);
    for (unsigned value = 0; value < 3; ++value) {
        cudaGraphCreate(&graph, 0);
        cudaGraphConditionalHandle which;
        cudaGraphConditionalHandleCreate(&which, graph, 0, 0);
        void* of_choose[] = {&which, &value};
        cudaGraphNode_t chosen = kernel(graph, nullptr, (void*)choose, 1, of_choose);
        cudaGraph_t* bodies = body(graph, &chosen, which, cudaGraphCondTypeSwitch, 2);
        int hundred = 100, thousand = 1000;
        void *of_hundred[] = {&out, &hundred}, *of_thousand[] = {&out, &thousand};
        kernel(bodies[0], nullptr, (void*)add, 1, of_hundred);
        kernel(bodies[1], nullptr, (void*)add, 1, of_thousand);
        launch(graph, 1);
        printf("%d ", *out);
    }
    printf("\n");
}
int main() {
    int* out;
    cudaMallocManaged(&out, 4 * sizeof(int));
    for (int i = 0; i < 4; ++i)
        out[i] = 0;
    child(out);
    memory(out);
    *out = 0;
    conditions(out);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    cudaFree(out);
}
