// printf on the device: formats, strings, several lines from one thread in order, output at the
// synchronisation.
#include <cstdio>

__global__ void speak() {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i != 5)
        return;
    printf("thread %d of block %d\n", threadIdx.x, blockIdx.x);
    printf("%5d|%-5d|%05d|%x|%X|%o|%c|%%\n", 42, 42, 42, 255u, 255u, 8u, 'A');
    printf("%.3f %8.2e %g %s\n", 3.14159, 12345.678, 0.5f, "string");
    printf("%lld %llu %d\n", -1234567890123LL, 18446744073709551615ULL, (int)sizeof(double));
    int written = printf("no arguments\n");
    printf("%d\n", written);
}

int main() {
    printf("before\n");
    speak<<<2, 4>>>();
    cudaDeviceSynchronize();
    printf("after\n");
}
