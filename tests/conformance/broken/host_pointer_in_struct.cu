// expect: host; line 9; mode: check
// The pointer to host memory is hidden in a structure.
#include <cstdio>
struct List {
    int *values, n;
};
__global__ void set(List list) {
    if (threadIdx.x < list.n)
        list.values[threadIdx.x] = 1;
}
int main() {
    int* values = new int[32];
    set<<<1, 32>>>(List{values, 32});
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    delete[] values;
}
