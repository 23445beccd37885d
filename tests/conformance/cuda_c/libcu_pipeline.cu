// libcu++: pipelines of a block with three stages, of producers and consumers, of one thread.
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda/pipeline>
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;
constexpr auto scope = cuda::thread_scope_block;

__global__ void staged(const int* in, int* out, int batches) {
    constexpr int stages = 3;
    __shared__ alignas(16) int tiles[stages][64];
    __shared__ cuda::pipeline_shared_state<scope, stages> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    for (int batch = 0, next = 0; batch < batches; ++batch) {
        for (; next < batches && next < batch + stages; ++next) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tiles[next % stages], in + next * 64,
                               cuda::aligned_size_t<16>(64 * sizeof(int)), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[batch * 64 + threadIdx.x] = 2 * tiles[batch % stages][63 - threadIdx.x];
        pipe.consumer_release();
    }
}
__global__ void roles(const int* in, int* out, int batches) {
    __shared__ int tiles[2][32];
    __shared__ cuda::pipeline_shared_state<scope, 2> state;
    auto block = cg::this_thread_block();
    bool produces = threadIdx.x < 32;
    auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    int lane = threadIdx.x % 32;
    for (int batch = 0; batch < batches; ++batch) {
        if (produces) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tiles[batch % 2][lane], in + batch * 32 + lane, sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            out[batch * 32 + lane] = tiles[batch % 2][31 - lane];
            pipe.consumer_release();
        }
    }
}
__global__ void alone(const int* in, int* out) {
    __shared__ int tiles[2][64];
    auto pipe = cuda::make_pipeline();
    for (int k = 0; k < 2; ++k) {
        pipe.producer_acquire();
        cuda::memcpy_async(&tiles[k][threadIdx.x], in + k * 64 + threadIdx.x, sizeof(int), pipe);
        pipe.producer_commit();
    }
    for (int k = 0; k < 2; ++k) {
        pipe.consumer_wait();
        out[k * 64 + threadIdx.x] = tiles[k][threadIdx.x] + k;
        pipe.consumer_release();
    }
}
int main() {
    int *in, *out;
    cudaMallocManaged(&in, 512 * sizeof(int));
    cudaMallocManaged(&out, 512 * sizeof(int));
    for (int i = 0; i < 512; ++i)
        in[i] = 7 * i;
    staged<<<1, 64>>>(in, out, 8);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", out[0], out[64], out[511]);
    roles<<<1, 64>>>(in, out, 16);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", out[0], out[32], out[511]);
    alone<<<1, 64>>>(in, out);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", out[0], out[64], out[127]);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    cudaFree(in);
    cudaFree(out);
}
