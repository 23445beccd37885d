// A kernel's argument with a destructor: it ends once, on the host; a thread's copy is bits.
#include <cstdio>
static int copied = 0, ended = 0;
struct Plain {
    int* count;
    explicit Plain(int* c) : count(c) {}
    Plain(const Plain&) = default;
    __host__ __device__ ~Plain() {
#ifdef __CUDA_ARCH__
        atomicAdd(count, 1000);
#else
        ++ended;
#endif
    }
};
struct Counted {
    int value;
    explicit Counted(int v) : value(v) {}
    Counted(const Counted& other) : value(other.value) {
        ++copied;
    }
    ~Counted() {
        --copied;
    }
};
__global__ void visit(Plain plain, int add) {
    atomicAdd(plain.count, add);
}
__global__ void store(Counted counted, int* out) {
    if (threadIdx.x == 0)
        *out = counted.value;
    counted.value += threadIdx.x;
}

int main() {
    int *count, got = 0;
    cudaMalloc(&count, sizeof(int));
    cudaMemset(count, 0, sizeof(int));
    {
        Plain plain(count);
        visit<<<2, 32>>>(plain, 1);
        cudaMemcpy(&got, count, sizeof(int), cudaMemcpyDeviceToHost);
        printf("visits %d, ended %d\n", got, ended);
    }
    printf("ended %d\n", ended);
    Counted counted(7);
    store<<<1, 64>>>(counted, count);
    cudaMemcpy(&got, count, sizeof(int), cudaMemcpyDeviceToHost);
    printf("value %d, copies left %d\n", got, copied);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaGraph_t graph;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    visit<<<2, 32, 0, stream>>>(Plain(count), 1);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphExec_t exec;
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    cudaMemcpy(&got, count, sizeof(int), cudaMemcpyDeviceToHost);
    printf("visits %d, ended %d\n", got, ended);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    printf("ended %d\n", ended);
    cudaStreamDestroy(stream);
    cudaFree(count);
}
