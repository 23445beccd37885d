// Cooperative groups: the threads that took a branch together, for one atomic a group.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

__device__ int add_one_each(int* counter) {
    cg::coalesced_group g = cg::coalesced_threads();
    int first = 0;
    if (g.thread_rank() == 0)
        first = atomicAdd(counter, g.size());
    return g.shfl(first, 0) + g.thread_rank();
}

__global__ void keep(const int* in, int n, int* out, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] % 3 == 0)
        out[add_one_each(count)] = in[i];
}

__global__ void sizes(int* out) {
    if (threadIdx.x % 4 == 1) {
        cg::coalesced_group g = cg::coalesced_threads();
        g.sync();
        int largest = g.shfl(threadIdx.x, g.size() - 1);
        unsigned early = g.ballot(g.thread_rank() < 3);
        if (g.thread_rank() == 2)
            out[0] = g.size(), out[1] = threadIdx.x, out[2] = largest, out[3] = early;
    }
}

int main() {
    const int n = 1000;
    int *in, *out, *count;
    cudaMallocManaged(&in, n * sizeof(int));
    cudaMallocManaged(&out, n * sizeof(int));
    cudaMallocManaged(&count, sizeof(int));
    *count = 0;
    for (int i = 0; i < n; i++)
        in[i] = i;
    keep<<<8, 128>>>(in, n, out, count);
    cudaDeviceSynchronize();
    long sum = 0;
    for (int i = 0; i < *count; i++)
        sum += out[i];
    printf("kept %d, sum %ld\n", *count, sum);
    sizes<<<1, 32>>>(out);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
    cudaFree(in);
    cudaFree(out);
    cudaFree(count);
}
