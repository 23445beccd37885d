// libcu++: atomics of three scopes, references to plain variables, waiting for a value.
#include <cstdio>
#include <cuda/atomic>
#include <cuda/std/atomic>

__device__ cuda::atomic<int, cuda::thread_scope_device> counter{5};
__device__ cuda::std::atomic<unsigned> bits{0};

__global__ void count(int* least, float* sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    counter.fetch_add(2, cuda::memory_order_relaxed);
    bits |= 1u << (i % 20);
    cuda::atomic_ref<int, cuda::thread_scope_device> smallest(*least);
    smallest.fetch_min(100 - i);
    cuda::atomic_ref<float, cuda::thread_scope_device> total(*sum);
    float seen = total.load();
    while (!total.compare_exchange_weak(seen, seen + 0.5f)) {}
}
// Each block waits for the one before it.
__global__ void in_turn(int* turn, int* log) {
    cuda::atomic_ref<int, cuda::thread_scope_device> now(*turn);
    while (now.load(cuda::memory_order_acquire) != int(blockIdx.x)) {}
    log[blockIdx.x] = blockIdx.x ? 2 * log[blockIdx.x - 1] + 1 : 1;
    now.store(blockIdx.x + 1, cuda::memory_order_release);
}
int main() {
    int* values;
    float* sum;
    cudaMallocManaged(&values, 16 * sizeof(int));
    cudaMallocManaged(&sum, sizeof(float));
    values[0] = 1000;
    *sum = 0;
    count<<<4, 64>>>(values, sum);
    cudaDeviceSynchronize();
    int total;
    unsigned all;
    cudaMemcpyFromSymbol(&total, counter, sizeof total);
    cudaMemcpyFromSymbol(&all, bits, sizeof all);
    printf("%d %u %d %g\n", total, all, values[0], *sum);
    values[0] = 0;
    in_turn<<<8, 1>>>(values, values + 1);
    cudaDeviceSynchronize();
    for (int i = 0; i < 9; ++i)
        printf("%d ", values[i]);
    cuda::atomic<long long> host(40);
    long long expected = 41;
    bool swapped = host.compare_exchange_strong(expected, 7);
    printf("\n%d %lld %lld ", swapped, expected, host.exchange(3));
    long long next = ++host;
    printf("%lld %lld %s\n", next, host.load(), cudaGetErrorName(cudaGetLastError()));
    cudaFree(values);
    cudaFree(sum);
}
