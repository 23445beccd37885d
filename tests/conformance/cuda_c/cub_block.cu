// CUB inside a kernel: block and warp reductions and scans.
#include <cstdio>
#include <cub/cub.cuh>

struct Largest {
    __device__ int operator()(int a, int b) const {
        return a > b ? a : b;
    }
};

template <int THREADS>
__global__ void work(int* out, int* scanned) {
    using Reduce = cub::BlockReduce<int, THREADS>;
    using Scan = cub::BlockScan<int, THREADS>;
    using Warp = cub::WarpReduce<int>;
    __shared__ typename Reduce::TempStorage reduce_storage;
    __shared__ typename Scan::TempStorage scan_storage;
    __shared__ typename Warp::TempStorage warp_storage[THREADS / 32];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    int sum = Reduce(reduce_storage).Sum(t);
    __syncthreads();
    int largest = Reduce(reduce_storage).Reduce(i * 37 % 101, Largest());
    int warp = Warp(warp_storage[t / 32]).Sum(t);
    if (t == 0)
        out[3 * blockIdx.x] = sum, out[3 * blockIdx.x + 1] = largest;
    if (t == 32)
        out[3 * blockIdx.x + 2] = warp;
    int before, upto, total;
    Scan(scan_storage).ExclusiveSum(t % 3, before, total);
    __syncthreads();
    Scan(scan_storage).InclusiveSum(1, upto);
    scanned[i] = before + 1000 * upto + 1000000 * total;
}

int main() {
    int *out, *scanned;
    cudaMallocManaged(&out, 6 * sizeof(int));
    cudaMallocManaged(&scanned, 128 * sizeof(int));
    work<64><<<2, 64>>>(out, scanned);
    cudaDeviceSynchronize();
    for (int i = 0; i < 6; i++)
        printf("%d ", out[i]);
    printf("\n");
    for (int i : {0, 1, 2, 3, 4, 33, 63, 64, 127})
        printf("%d ", scanned[i]);
    printf("\n");
    cudaFree(out);
    cudaFree(scanned);
}
