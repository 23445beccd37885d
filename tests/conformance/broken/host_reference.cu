// expect: host-pointer-in-kernel; line 9; mode: fast
// A kernel's parameter refers to a variable of the host: only its address is passed.
#include <cstdio>
__global__ void count(int& sum) {
    atomicAdd(&sum, 1);
}
int main() {
    int sum = 0;
    count<<<1, 32>>>(sum);
    cudaDeviceSynchronize();
    printf("%d\n", sum);
}
