// Atomics with block and system scope.
#include <cstdio>

__global__ void work(int* a, unsigned* u, float* f) {
    __shared__ int local;
    if (threadIdx.x == 0)
        local = 0;
    __syncthreads();
    atomicAdd_block(&local, 1);
    atomicMax_block(&u[blockIdx.x], threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&a[0], local);
    atomicAdd_system(&a[1], 2);
    atomicMin_system(&a[2], -(int)threadIdx.x);
    atomicCAS_system(&a[3], 0, 9);
    atomicExch_block(&u[2 + blockIdx.x], 4u);
    atomicAdd_system(f, 0.5f);
    atomicOr_system(&a[4], 1 << (threadIdx.x % 6));
}

int main() {
    int* a;
    unsigned* u;
    float* f;
    cudaMallocManaged(&a, 5 * sizeof(int));
    cudaMallocManaged(&u, 4 * sizeof(unsigned));
    cudaMallocManaged(&f, sizeof(float));
    for (int i = 0; i < 5; i++)
        a[i] = 0;
    for (int i = 0; i < 4; i++)
        u[i] = 0;
    *f = 0;
    work<<<2, 50>>>(a, u, f);
    cudaDeviceSynchronize();
    printf("%d %d %d %d %d  %u %u %u %u  %g\n", a[0], a[1], a[2], a[3], a[4], u[0], u[1], u[2],
           u[3], *f);
    cudaFree(a);
    cudaFree(u);
    cudaFree(f);
}
