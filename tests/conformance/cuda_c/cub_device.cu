// CUB for whole arrays: the first call says how much temporary memory is wanted, the second does
// the work.
#include <cstdio>
#include <cub/cub.cuh>

template <typename F>
void twice(F call) {
    void* storage = nullptr;
    size_t bytes = 0;
    call(storage, bytes);
    cudaMalloc(&storage, bytes);
    call(storage, bytes);
    cudaDeviceSynchronize();
    cudaFree(storage);
}

int main() {
    const int n = 1000;
    int *in, *out, *values, *sorted;
    float* samples;
    cudaMallocManaged(&in, n * sizeof(int));
    cudaMallocManaged(&out, n * sizeof(int));
    cudaMallocManaged(&values, n * sizeof(int));
    cudaMallocManaged(&sorted, n * sizeof(int));
    cudaMallocManaged(&samples, n * sizeof(float));
    for (int i = 0; i < n; i++)
        in[i] = i * 7919 % 1009 - 500, values[i] = i, samples[i] = i % 40 * 0.25f;
    twice([&](void* s, size_t& b) { cub::DeviceReduce::Sum(s, b, in, out, n); });
    printf("%d ", out[0]);
    twice([&](void* s, size_t& b) { cub::DeviceReduce::Max(s, b, in, out, n); });
    printf("%d ", out[0]);
    twice([&](void* s, size_t& b) { cub::DeviceReduce::Min(s, b, in, out, n); });
    printf("%d\n", out[0]);
    twice([&](void* s, size_t& b) { cub::DeviceScan::ExclusiveSum(s, b, in, out, n); });
    printf("%d %d %d ", out[0], out[1], out[999]);
    twice([&](void* s, size_t& b) { cub::DeviceScan::InclusiveSum(s, b, in, out, n); });
    printf("%d %d\n", out[0], out[999]);
    twice([&](void* s, size_t& b) { cub::DeviceRadixSort::SortKeys(s, b, in, out, n); });
    printf("%d %d %d %d\n", out[0], out[1], out[500], out[999]);
    twice([&](void* s, size_t& b) {
        cub::DeviceRadixSort::SortPairs(s, b, in, out, values, sorted, n);
    });
    printf("%d %d %d\n", sorted[0], sorted[500], sorted[999]);
    twice([&](void* s, size_t& b) { cub::DeviceRadixSort::SortKeysDescending(s, b, in, out, n); });
    printf("%d %d\n", out[0], out[999]);
    twice([&](void* s, size_t& b) {
        cub::DeviceHistogram::HistogramEven(s, b, samples, out, 6, 0.0f, 5.0f, n);
    });
    for (int i = 0; i < 5; i++)
        printf("%d ", out[i]);
    printf("\n");
    cudaFree(in);
    cudaFree(out);
    cudaFree(values);
    cudaFree(sorted);
    cudaFree(samples);
}
