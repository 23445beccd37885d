// __syncthreads_count, _and, _or; barriers after early exits; a barrier in a loop; a block that is
// no multiple of 32.
#include <cstdio>

__global__ void work(int* out) {
    int t = threadIdx.x;
    int odd = __syncthreads_count(t % 2);
    int all = __syncthreads_and(t < 70), most = __syncthreads_and(t < 69),
        any = __syncthreads_or(t == 69), none = __syncthreads_or(t == 70);
    if (t == 33)
        out[0] = odd, out[1] = all, out[2] = most, out[3] = any, out[4] = none;
}

__global__ void shift(int* out, int n) {
    __shared__ int ring[70];
    int t = threadIdx.x;
    if (t >= 70)
        return;  // these threads are gone: the barrier does not wait for them
    ring[t] = t;
    for (int step = 0; step < n; step++) {
        __syncthreads();
        int next = ring[(t + 1) % 70];
        __syncthreads();
        ring[t] = next;
    }
    out[t] = ring[t];
}

int main() {
    int* out;
    cudaMallocManaged(&out, 70 * sizeof(int));
    work<<<1, 70>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 5; i++)
        printf("%d ", out[i]);
    printf("\n");
    shift<<<1, 96>>>(out, 25);
    cudaDeviceSynchronize();
    for (int i = 0; i < 70; i += 10)
        printf("%d ", out[i]);
    printf("%d\n", out[69]);
    cudaFree(out);
}
