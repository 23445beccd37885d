// expect: host-pointer-in-kernel; line 9; mode: fast
// A kernel is given memory of malloc.
#include <cstdlib>
__global__ void set(int* out) {
    out[threadIdx.x] = 1;
}
int main() {
    int* out = (int*)malloc(32 * sizeof(int));
    set<<<1, 32>>>(out);
    cudaDeviceSynchronize();
    free(out);
}
