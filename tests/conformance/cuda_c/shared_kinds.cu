// Shared memory of other kinds: structures, three dimensions, volatile, in device functions and
// templates, in loops.
#include <cstdio>

struct Pair {
    float value;
    int index;
};

__device__ int scratch(int v) {
    __shared__ int box[32];  // one for the block, though the function is called twice
    box[threadIdx.x] = v;
    __syncthreads();
    int result = box[(threadIdx.x + 1) % 32];
    __syncthreads();
    return result;
}

template <class T, int N>
__device__ T rotate(T v) {
    __shared__ T box[N];
    box[threadIdx.x % N] = v;
    __syncthreads();
    T result = box[(threadIdx.x + N / 2) % N];
    __syncthreads();
    return result;
}

__global__ void work(int* out, float* f) {
    __shared__ Pair best[32];
    __shared__ int cube[2][4][4];
    __shared__ volatile int last;
    __shared__ int *pointer, count;
    int t = threadIdx.x;
    best[t] = {float((t * 13) % 32), t};
    cube[t / 16][t / 4 % 4][t % 4] = t;
    if (t == 31)
        last = 77, pointer = &cube[1][2][3], count = sizeof(cube) / sizeof(cube[0][0][0]);
    __syncthreads();
    for (int k = 16; k > 0; k >>= 1) {
        if (t < k && best[t + k].value > best[t].value)
            best[t] = best[t + k];
        __syncthreads();
    }
    out[t] = scratch(t) + 100 * scratch(t * t) + last + *pointer + count +
             cube[(t / 16) ^ 1][t / 4 % 4][t % 4] * 1000000;
    f[t] = rotate<float, 32>(t * 0.5f) + rotate<int, 32>(t) * 100 + best[0].index * 10000;
}

int main() {
    int* out;
    float* f;
    cudaMallocManaged(&out, 32 * sizeof(int));
    cudaMallocManaged(&f, 32 * sizeof(float));
    work<<<1, 32>>>(out, f);
    cudaDeviceSynchronize();
    for (int i : {0, 7, 16, 31})
        printf("%d %g\n", out[i], f[i]);
    cudaFree(out);
    cudaFree(f);
}
