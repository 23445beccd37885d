// expect: use-after-free; line 9; mode: fast
// The freed pointer is hidden in a structure.
#include <cstdio>
struct List {
    int *values, n;
};
__global__ void set(List list) {
    if (threadIdx.x < list.n)
        list.values[threadIdx.x] = 1;
}
int main() {
    List list{nullptr, 32};
    cudaMalloc(&list.values, 32 * sizeof(int));
    cudaFree(list.values);
    set<<<1, 32>>>(list);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
