// Bulk copies as CUDA's programming guide writes them: cuda::device::experimental.
#include <cuda/barrier>
#include <cstdio>
namespace cde = cuda::device::experimental;
using barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void add_one(int* out, const int* in) {
    __shared__ alignas(128) int tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier there;
    if (threadIdx.x == 0) {
        init(&there, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_global_to_shared(tile, in + blockIdx.x * 256, sizeof(tile), there);
        token = cuda::device::barrier_arrive_tx(there, 1, sizeof(tile));
    } else {
        token = there.arrive();
    }
    there.wait(std::move(token));
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        tile[i] += 1;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_shared_to_global(out + blockIdx.x * 256, tile, sizeof(tile));
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
    }
}
int main() {
    const int n = 1024;
    int *in, *out;
    cudaMallocManaged(&in, n * sizeof(int));
    cudaMallocManaged(&out, n * sizeof(int));
    for (int i = 0; i < n; i++) {
        in[i] = 3 * i;
        out[i] = -1;
    }
    add_one<<<n / 256, 64>>>(out, in);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    long long sum = 0;
    for (int i = 0; i < n; i++)
        sum += (i + 1ll) * out[i];
    printf("%d %d %lld\n", out[0], out[n - 1], sum);
    cudaFree(in);
    cudaFree(out);
}
