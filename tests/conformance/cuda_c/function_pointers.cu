// Device function pointers: chosen on the device, in a device table, and fetched by the host from a
// symbol.
#include <cstdio>

using Operation = int (*)(int, int);

__device__ int add(int a, int b) {
    return a + b;
}
__device__ int multiply(int a, int b) {
    return a * b;
}

__device__ Operation table[2] = {add, multiply};
__device__ Operation chosen = multiply;

__global__ void from_table(int* out) {
    int t = threadIdx.x;
    out[t] = table[t % 2](t, 10);
}

__global__ void from_host(Operation op, int* out) {
    out[threadIdx.x] = op(threadIdx.x, 7);
}

template <int (*F)(int, int)>
__global__ void from_template(int* out) {
    out[threadIdx.x] = F(threadIdx.x, 5);
}

int main() {
    int* out;
    cudaMallocManaged(&out, 4 * sizeof(int));
    from_table<<<1, 4>>>(out);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
    Operation op;
    cudaMemcpyFromSymbol(&op, chosen, sizeof(op));
    from_host<<<1, 4>>>(op, out);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
    from_template<add><<<1, 4>>>(out);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
    cudaFree(out);
}
