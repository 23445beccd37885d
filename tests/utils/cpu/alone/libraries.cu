// Three libraries in one program: cuBLAS multiplies, Thrust sorts, cooperative groups sum.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cublas_v2.h>
#include <cstdio>
#include <thrust/device_vector.h>
#include <thrust/sort.h>

namespace cg = cooperative_groups;

__global__ void sum_of_warps(float* sums, const float* values) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    float sum = cg::reduce(warp, values[cg::this_grid().thread_rank()], cg::plus<float>());
    if (warp.thread_rank() == 0)
        sums[cg::this_grid().thread_rank() / 32] = sum;
}

int main() {
    const int n = 8;
    thrust::device_vector<float> a(n * n), product(n * n), sums(2);
    for (int i = 0; i < n * n; ++i)
        a[i] = (i * 37) % 64;
    cublasHandle_t handle;
    cublasCreate(&handle);
    const float one = 1, zero = 0;
    float* from = thrust::raw_pointer_cast(a.data());
    float* to = thrust::raw_pointer_cast(product.data());
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, from, n, from, n, &zero, to, n);
    cublasDestroy(handle);
    thrust::sort(a.begin(), a.end());
    sum_of_warps<<<1, n * n>>>(thrust::raw_pointer_cast(sums.data()), from);
    if (cudaDeviceSynchronize() != cudaSuccess)
        return 1;
    printf("%g %g %g %g\n", float(product[0]), float(a[1]), float(sums[0]), float(sums[1]));
}
