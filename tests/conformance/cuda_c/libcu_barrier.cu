// libcu++: barriers in shared memory: tokens, parity, who leaves, copies that one counts in.
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda/barrier>
#include <utility>
#pragma nv_diag_suppress static_var_with_dynamic_init

using block_barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cg = cooperative_groups;

__global__ void neighbours(int* out) {
    __shared__ block_barrier bar;
    __shared__ int values[64];
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    values[threadIdx.x] = 3 * threadIdx.x;
    auto token = bar.arrive();
    bar.wait(std::move(token));
    int next = values[(threadIdx.x + 1) % 64];
    bar.arrive_and_wait();
    values[threadIdx.x] = next + 1;
    bar.arrive_and_wait();
    out[threadIdx.x] = values[(threadIdx.x + 1) % 64];
}
// The second half leaves after the first phase.
__global__ void leave(int* out) {
    __shared__ block_barrier bar;
    __shared__ int sum;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        sum = 0;
    }
    __syncthreads();
    atomicAdd(&sum, 1);
    if (threadIdx.x >= 32) {
        bar.arrive_and_drop();
        return;
    }
    bar.arrive_and_wait();
    int first = sum;
    bar.arrive_and_wait();
    atomicAdd(&sum, 10);
    bar.arrive_and_wait();
    out[threadIdx.x] = first + 1000 * sum;
}
__global__ void reverse(const int* in, int* out, int n) {
    __shared__ alignas(16) int tile[128];
    __shared__ block_barrier bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0)
        init(&bar, block.size());
    block.sync();
    for (int i = 0; i < n; i += 128) {
        cuda::memcpy_async(block, tile, in + i, cuda::aligned_size_t<16>(sizeof tile), bar);
        bar.arrive_and_wait();
        out[i + threadIdx.x] = tile[127 - threadIdx.x];
        block.sync();
    }
}
int main() {
    int *in, *out;
    cudaMallocManaged(&in, 512 * sizeof(int));
    cudaMallocManaged(&out, 512 * sizeof(int));
    for (int i = 0; i < 512; ++i)
        in[i] = i * i;
    neighbours<<<1, 64>>>(out);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[61], out[62], out[63]);
    leave<<<1, 64>>>(out);
    cudaDeviceSynchronize();
    printf("%d %d\n", out[0], out[31]);
    reverse<<<1, 128>>>(in, out, 512);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[127], out[128], out[511]);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    cudaFree(in);
    cudaFree(out);
}
