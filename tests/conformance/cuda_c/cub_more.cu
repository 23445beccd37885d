// flags: --extended-lambda
// CUB: loads and stores of tiles, block sorts, warp scans, selection, runs, segments, double
// buffers.
#include <cstdio>
#include <cub/cub.cuh>

__global__ void sort_tiles(const int* in, int* out, int n) {
    using Load = cub::BlockLoad<int, 32, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<int, 32, 4, cub::BLOCK_STORE_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<int, 32, 4>;
    using Scan = cub::BlockScan<int, 32>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Sort::TempStorage sort;
        typename Scan::TempStorage scan;
    } temp;
    int items[4], offset = blockIdx.x * 128;
    Load(temp.load).Load(in + offset, items, n - offset, 1000);
    __syncthreads();
    Sort(temp.sort).Sort(items);
    __syncthreads();
    for (int& x : items)
        x = x < 1000;
    int places[4];
    Scan(temp.scan).InclusiveSum(items, places);
    __syncthreads();
    Store(temp.store).Store(out + offset, places, n - offset);
}

__global__ void warps(int* out) {
    using Scan = cub::WarpScan<int>;
    using Eight = cub::WarpReduce<int, 8>;
    __shared__ typename Scan::TempStorage scan[2];
    __shared__ typename Eight::TempStorage reduce[8];
    int t = threadIdx.x, sum, before;
    Scan(scan[t / 32]).InclusiveSum(t, sum);
    __syncthreads();
    Scan(scan[t / 32]).ExclusiveSum(1, before);
    int eight = Eight(reduce[t / 8]).Sum(t);
    out[t] = sum + 10000 * before + (t % 8 == 0 ? 1000000 * eight : 0);
}

struct Small {
    __host__ __device__ bool operator()(int x) const {
        return x < 5;
    }
};

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
    const int n = 200;
    int *in, *out, *more, *count, *offsets;
    char* flags;
    for (int** p : {&in, &out, &more, &count, &offsets})
        cudaMallocManaged(p, n * sizeof(int));
    cudaMallocManaged(&flags, n);
    for (int i = 0; i < n; i++)
        in[i] = i * 7 % 23 / 2, flags[i] = i % 50 == 0;
    sort_tiles<<<2, 32>>>(in, out, n);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[127], out[128], out[199]);
    warps<<<1, 64>>>(out);
    cudaDeviceSynchronize();
    for (int i : {0, 1, 8, 31, 32, 40, 63})
        printf("%d ", out[i]);
    printf("\n");
    twice([&](void* s, size_t& b) { cub::DeviceSelect::If(s, b, in, out, count, n, Small()); });
    printf("%d: %d %d %d\n", *count, out[0], out[1], out[*count - 1]);
    twice([&](void* s, size_t& b) { cub::DeviceSelect::Flagged(s, b, in, flags, out, count, n); });
    printf("%d: %d %d %d %d\n", *count, out[0], out[1], out[2], out[3]);
    twice([&](void* s, size_t& b) { cub::DeviceSelect::Unique(s, b, in, out, count, n); });
    printf("%d\n", *count);
    cub::DoubleBuffer<int> keys(in, out);
    twice([&](void* s, size_t& b) { cub::DeviceRadixSort::SortKeys(s, b, keys, n); });
    printf("%d %d\n", keys.Current()[0], keys.Current()[n - 1]);
    twice([&](void* s, size_t& b) {
        cub::DeviceRunLengthEncode::Encode(s, b, keys.Current(), more, offsets, count, n);
    });
    printf("%d: %d x %d, %d x %d\n", *count, offsets[0], more[0], offsets[*count - 1],
           more[*count - 1]);
    for (int i = 0; i < 5; i++)
        offsets[i] = i * 50;
    for (int i = 0; i < n; i++)
        in[i] = i;
    twice([&](void* s, size_t& b) {
        cub::DeviceSegmentedReduce::Sum(s, b, in, out, 4, offsets, offsets + 1);
    });
    for (int i = 0; i < 4; i++)
        printf("%d ", out[i]);
    twice([&](void* s, size_t& b) {
        cub::DeviceScan::InclusiveScan(
            s, b, in, out, [] __host__ __device__(int a, int b) { return a > b ? a : b; }, n);
    });
    printf("%d\n", out[n - 1]);
    float* f;
    cudaMallocManaged(&f, n * sizeof(float));
    for (int i = 0; i < n; i++)
        f[i] = (i * 37 % n - 100) * 0.5f;
    twice([&](void* s, size_t& b) { cub::DeviceRadixSort::SortKeys(s, b, f, f + 100, 100); });
    printf("%g %g %g\n", f[100], f[150], f[199]);
    for (int* p : {in, out, more, count, offsets})
        cudaFree(p);
    cudaFree(flags);
    cudaFree(f);
}
