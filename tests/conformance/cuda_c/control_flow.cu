// Recursion, goto, early return, nested loops, pragma unroll, local arrays, static constants,
// threads that differ.
#include <cstdio>

__device__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ int collatz(unsigned n) {
    int steps = 0;
again:
    if (n == 1)
        return steps;
    n = n & 1 ? 3 * n + 1 : n / 2;
    ++steps;
    goto again;
}

__global__ void work(int* out) {
    int t = threadIdx.x;
    if (t >= 8)
        return;
    static const int table[] = {5, 4, 3, 2, 1};
    int local[5];
#pragma unroll
    for (int i = 0; i < 5; i++)
        local[i] = table[(i + t) % 5];
    int digits = 0;
    for (int i = 0;; i++) {
        if (i == 5)
            break;
        if (local[i] == t)
            continue;
        digits = digits * 10 + local[i];
    }
    out[t] = digits;
    out[8 + t] = fibonacci(t + 5) * 1000 + collatz(t + 1);
}

int main() {
    int host[16], *device;
    cudaMalloc(&device, sizeof(host));
    work<<<1, 40>>>(device);
    cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
    for (int i = 0; i < 8; i++)
        printf("%d %d\n", host[i], host[8 + i]);
    cudaFree(device);
}
