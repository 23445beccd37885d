// 64-bit integer atomics.
#include <cstdio>
typedef unsigned long long ull;

__global__ void work(ull* a, long long* s) {
    ull t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&a[0], t << 30);
    atomicMin(&a[1], (1ull << 60) + t);
    atomicMax(&a[2], (1ull << 60) + t);
    atomicAnd(&a[3], ~(1ull << (t % 64)));
    atomicOr(&a[4], 1ull << (t % 50));
    atomicXor(&a[5], t << 40);
    atomicExch(&a[6], 123456789012345ull);
    atomicCAS(&a[7], 9ull, 1ull << 63);
    atomicMin(&s[0], -(long long)t);
    atomicMax(&s[1], (long long)t - 1000);
    atomicAdd(&a[8], (ull)-1LL);
}

int main() {
    ull* a;
    long long* s;
    cudaMallocManaged(&a, 9 * sizeof(ull));
    cudaMallocManaged(&s, 2 * sizeof(long long));
    ull first[9] = {0, ~0ull, 0, ~0ull, 0, 0, 0, 9, 5};
    for (int i = 0; i < 9; i++)
        a[i] = first[i];
    s[0] = 0, s[1] = -5000;
    work<<<10, 30>>>(a, s);
    cudaDeviceSynchronize();
    for (int i = 0; i < 9; i++)
        printf("%llu\n", a[i]);
    printf("%lld %lld\n", s[0], s[1]);
    cudaFree(a);
    cudaFree(s);
}
