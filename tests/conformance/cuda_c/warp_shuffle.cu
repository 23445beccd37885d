// The four shuffles over a whole warp, for every type they take.
#include <cstdio>

__global__ void work(int* out, double* d, long long* l, float* f) {
    int lane = threadIdx.x;
    const unsigned all = 0xffffffff;
    out[lane] = __shfl_sync(all, lane * 10, 5);
    out[32 + lane] = __shfl_up_sync(all, lane * 10, 3);
    out[64 + lane] = __shfl_down_sync(all, lane * 10, 7);
    out[96 + lane] = __shfl_xor_sync(all, lane * 10, 9);
    d[lane] = __shfl_sync(all, lane + 0.25, 31 - lane);
    l[lane] = __shfl_xor_sync(all, (1LL << 40) + lane, 1);
    f[lane] = __shfl_down_sync(all, lane * 0.5f, 1);
    float sum = lane;
    for (int k = 16; k > 0; k /= 2)
        sum += __shfl_xor_sync(all, sum, k);
    if (lane == 0)
        f[32] = sum;
    int prefix = lane;
    for (int k = 1; k < 32; k *= 2) {
        int other = __shfl_up_sync(all, prefix, k);
        if (lane >= k)
            prefix += other;
    }
    out[128 + lane] = prefix;
}

int main() {
    int* out;
    double* d;
    long long* l;
    float* f;
    cudaMallocManaged(&out, 160 * sizeof(int));
    cudaMallocManaged(&d, 32 * sizeof(double));
    cudaMallocManaged(&l, 32 * sizeof(long long));
    cudaMallocManaged(&f, 33 * sizeof(float));
    work<<<1, 32>>>(out, d, l, f);
    cudaDeviceSynchronize();
    for (int i = 0; i < 160; i++)
        printf("%d%c", out[i], i % 32 == 31 ? '\n' : ' ');
    printf("%.2f %.2f %lld %.1f %.1f %.0f\n", d[0], d[30], l[6] - (1LL << 40), f[0], f[31], f[32]);
    cudaFree(out);
    cudaFree(d);
    cudaFree(l);
    cudaFree(f);
}
