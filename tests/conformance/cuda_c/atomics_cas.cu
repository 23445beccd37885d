// Compare-and-swap loops: a maximum of floats, a product of doubles, a spin lock, a linked list.
#include <cstdio>

__device__ float atomic_max(float* address, float value) {
    int* bits = (int*)address;
    int old = *bits, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= value)
            break;
        old = atomicCAS(bits, assumed, __float_as_int(value));
    } while (assumed != old);
    return __int_as_float(old);
}

__device__ double atomic_multiply(double* address, double value) {
    unsigned long long* bits = (unsigned long long*)address;
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(value * __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__global__ void work(float* largest, double* product) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomic_max(largest, (i * 37 % 101) * 0.5f);
    if (i < 20)
        atomic_multiply(product, 2.0);
}

__device__ int lock = 0, guarded = 0;

__global__ void critical() {
    if (threadIdx.x != 0)
        return;
    while (atomicCAS(&lock, 0, 1) != 0) {}
    __threadfence();
    volatile int* value = &guarded;
    *value = *value + 3;
    __threadfence();
    atomicExch(&lock, 0);
}

struct Node {
    int value, next;
};

__global__ void push(Node* nodes, int* head) {
    int i = threadIdx.x;
    nodes[i].value = i;
    nodes[i].next = atomicExch(head, i);
}

int main() {
    float* largest;
    double* product;
    Node* nodes;
    int *head, count;
    cudaMallocManaged(&largest, sizeof(float));
    cudaMallocManaged(&product, sizeof(double));
    cudaMallocManaged(&nodes, 64 * sizeof(Node));
    cudaMallocManaged(&head, sizeof(int));
    *largest = -1, *product = 3, *head = -1;
    work<<<4, 64>>>(largest, product);
    critical<<<40, 32>>>();
    push<<<1, 64>>>(nodes, head);
    cudaDeviceSynchronize();
    cudaMemcpyFromSymbol(&count, guarded, sizeof(int));
    int length = 0, sum = 0;
    for (int i = *head; i >= 0; i = nodes[i].next)
        length++, sum += nodes[i].value;
    printf("%g %g %d, list %d %d\n", *largest, *product, count, length, sum);
    cudaFree(largest);
    cudaFree(product);
    cudaFree(nodes);
    cudaFree(head);
}
