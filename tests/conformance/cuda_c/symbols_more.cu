// Symbols: asynchronous copies, between symbols, pointers stored on the device, arrays of
// structures, managed structures.
#include <cstdio>

struct Node {
    int value;
    Node* next;
};

__device__ Node* head = nullptr;
__device__ int squares[4];
__constant__ float weights[2][2];
__managed__ struct {
    int count;
    float mean;
} statistics;

__global__ void push(Node* n, int value) {
    n->value = value;
    n->next = head;
    head = n;
}
__global__ void walk() {
    statistics.count = 0, statistics.mean = 0;
    for (Node* n = head; n; n = n->next)
        statistics.count++, statistics.mean += n->value * weights[1][0];
    statistics.mean /= statistics.count;
    for (int i = 0; i < 4; i++)
        squares[i] = i * i;
}

int main() {
    Node* nodes;
    cudaMalloc(&nodes, 3 * sizeof(Node));
    float w[2][2] = {{1, 2}, {3, 4}};
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMemcpyToSymbolAsync(weights, w, sizeof(w), 0, cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    for (int i = 0; i < 3; i++)
        push<<<1, 1>>>(nodes + i, 10 * (i + 1));
    walk<<<1, 1>>>();
    int host[2];
    cudaMemcpyFromSymbolAsync(host, squares, sizeof(host), 2 * sizeof(int), cudaMemcpyDeviceToHost,
                              stream);
    cudaDeviceSynchronize();
    printf("%d %g %d %d\n", statistics.count, statistics.mean, host[0], host[1]);
    Node* h;
    cudaMemcpyFromSymbol(&h, head, sizeof(h));
    printf("%d\n", h == nodes + 2);
    float* address;
    cudaGetSymbolAddress((void**)&address, weights);
    float one = 0;
    cudaMemcpy(&one, address + 3, sizeof(float), cudaMemcpyDeviceToHost);
    printf("%g\n", one);
    cudaStreamDestroy(stream);
    cudaFree(nodes);
}
