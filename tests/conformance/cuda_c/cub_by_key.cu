// CUB: what sums are made in (int for bytes, the result's type for a reduction), sums and choices by
// key, partitions, sorts of segments and by comparison, its allocator.
#include <cstdio>
#include <cub/cub.cuh>
template <class Call>
void twice(Call call) {
    size_t bytes = 0;
    call(nullptr, bytes);
    void* temp;
    cudaMalloc(&temp, bytes);
    call(temp, bytes);
    cudaDeviceSynchronize();
    cudaFree(temp);
}
template <class T>
struct Numbers {
    T* at;
    int n;
    Numbers(std::initializer_list<T> values) : n(int(values.size())) {
        cudaMallocManaged(&at, n * sizeof(T));
        std::copy(values.begin(), values.end(), at);
    }
    ~Numbers() {
        cudaFree(at);
    }
    void show(int count) const {
        for (int i = 0; i < count; i++)
            printf("%g ", double(at[i]));
        printf("\n");
    }
};
struct Even {
    __host__ __device__ bool operator()(int x) const {
        return x % 2 == 0;
    }
};
struct Below {
    __host__ __device__ bool operator()(int a, int b) const {
        return a % 10 < b % 10;
    }
};
int main() {
    Numbers<unsigned char> bytes{200, 100, 250};
    Numbers<int> sums{0, 0, 0, 0, 0, 0}, keys{1, 1, 2, 3, 3, 3}, values{5, 9, 9, 4, 7, 6},
        out{0, 0, 0, 0, 0, 0}, more{0, 0, 0, 0, 0, 0};
    Numbers<int> ends{0, 2, 6};
    // a wide result is summed in its own type, a scan in what the operation makes of bytes
    twice([&](void* t, size_t& b) { cub::DeviceReduce::Sum(t, b, bytes.at, sums.at, 3); });
    sums.show(1);
    twice([&](void* t, size_t& b) { cub::DeviceScan::InclusiveSum(t, b, bytes.at, sums.at, 3); });
    sums.show(3);
    Numbers<float> halves{0.5f, 0.5f, 0.5f, 0.5f}, total{0};
    twice([&](void* t, size_t& b) {
        cub::DeviceReduce::Reduce(t, b, halves.at, total.at, 4, cuda::std::plus<>(), 0);
    });
    total.show(1);
    twice([&](void* t, size_t& b) {
        cub::DeviceSegmentedReduce::Sum(t, b, values.at, sums.at, 2, ends.at, ends.at + 1);
    });
    sums.show(2);
    cub::KeyValuePair<int, int>* best;
    cudaMallocManaged(&best, sizeof *best);
    twice([&](void* t, size_t& b) { cub::DeviceReduce::ArgMax(t, b, values.at, best, 6); });
    printf("%d %d\n", best->key, best->value);
    cudaFree(best);
    twice([&](void* t, size_t& b) {
        cub::DeviceReduce::ReduceByKey(t, b, keys.at, out.at, values.at, sums.at, more.at,
                                       cuda::std::plus<>(), 6);
    });
    sums.show(more.at[0]);
    twice([&](void* t, size_t& b) {
        cub::DeviceScan::InclusiveSumByKey(t, b, keys.at, values.at, out.at, 6);
    });
    out.show(6);
    twice([&](void* t, size_t& b) {
        cub::DeviceScan::ExclusiveSumByKey(t, b, keys.at, values.at, out.at, 6);
    });
    out.show(6);
    twice([&](void* t, size_t& b) {
        cub::DevicePartition::If(t, b, values.at, out.at, more.at, 6, Even());
    });
    out.show(6);
    twice([&](void* t, size_t& b) {
        cub::DeviceSelect::UniqueByKey(t, b, keys.at, values.at, out.at, sums.at, more.at, 6);
    });
    sums.show(more.at[0]);
    twice([&](void* t, size_t& b) {
        cub::DeviceRunLengthEncode::NonTrivialRuns(t, b, keys.at, out.at, sums.at, more.at, 6);
    });
    out.show(more.at[0]);
    twice([&](void* t, size_t& b) {
        cub::DeviceSegmentedSort::SortKeysDescending(t, b, values.at, out.at, 6, 2, ends.at,
                                                     ends.at + 1);
    });
    out.show(6);
    twice([&](void* t, size_t& b) {
        cub::DeviceSegmentedRadixSort::SortPairs(t, b, values.at, out.at, keys.at, sums.at, 6, 2,
                                                 ends.at, ends.at + 1);
    });
    out.show(6);
    sums.show(6);
    Numbers<int> tens{31, 12, 50, 21};
    twice([&](void* t, size_t& b) {
        cub::DeviceMergeSort::StableSortKeys(t, b, tens.at, 4, Below());
    });
    tens.show(4);
    twice([&](void* t, size_t& b) { cub::DeviceScan::ExclusiveSum(t, b, tens.at, 4); });
    tens.show(4);
    cub::DoubleBuffer<int> both(values.at, out.at);
    twice([&](void* t, size_t& b) { cub::DeviceRadixSort::SortKeysDescending(t, b, both, 6); });
    for (int i = 0; i < 6; i++)
        printf("%d ", both.Current()[i]);
    printf("\n");
    cub::CachingDeviceAllocator allocator;
    void* p;
    int allocated = allocator.DeviceAllocate(&p, 100);
    printf("%d %d\n", allocated, int(allocator.DeviceFree(p)));
}
