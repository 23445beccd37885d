// Halves and bfloat16 in shuffles, shared memory, cached loads and atomics; vectors in shuffles by
// their parts.
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void work(const __half* in, const half2* pairs, float* out, __nv_bfloat16* sum,
                     double* d) {
    __shared__ __half tile[32];
    __shared__ double total;
    int t = threadIdx.x;
    if (t == 0)
        total = 0;
    tile[t] = __ldg(&in[t]);
    __syncthreads();
    __half h = tile[31 - t];
    for (int k = 16; k > 0; k /= 2)
        h = __hadd(h, __shfl_xor_sync(0xffffffff, h, k));
    half2 p = __ldg(pairs + t);
    p = __hadd2(p, __shfl_down_sync(0xffffffff, p, 1));
    __nv_bfloat16 b = __shfl_sync(0xffffffff, __float2bfloat16(t * 2.0f), 9);
    out[t] = __half2float(h) + 1000 * __low2float(p) + 1e6f * __bfloat162float(b);
    atomicAdd(sum, __float2bfloat16(0.5f));
    atomicAdd(&total, 0.25);
    __syncthreads();
    if (t == 0)
        *d = total;
}

int main() {
    __half* in;
    half2* pairs;
    float* out;
    __nv_bfloat16* sum;
    double* d;
    cudaMallocManaged(&in, 32 * sizeof(__half));
    cudaMallocManaged(&pairs, 32 * sizeof(half2));
    cudaMallocManaged(&out, 32 * sizeof(float));
    cudaMallocManaged(&sum, 4);
    cudaMallocManaged(&d, sizeof(double));
    for (int i = 0; i < 32; i++)
        in[i] = __float2half(i % 4), pairs[i] = __floats2half2_rn(i, -i);
    *sum = __float2bfloat16(0.0f);
    work<<<1, 32>>>(in, pairs, out, sum, d);
    cudaDeviceSynchronize();
    printf("%.0f %.0f %g %g\n", out[0], out[3], __bfloat162float(*sum), *d);
    cudaFree(in);
    cudaFree(pairs);
    cudaFree(out);
    cudaFree(sum);
    cudaFree(d);
}
