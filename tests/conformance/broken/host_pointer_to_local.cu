// expect: host-pointer-in-kernel; line 9; mode: fast
// The kernel is given the address of a local variable for its result.
#include <cstdio>
__global__ void answer(int* out) {
    *out = 42;
}
int main() {
    int result = 0;
    answer<<<1, 1>>>(&result);
    cudaDeviceSynchronize();
    printf("%d\n", result);
}
