// expect: host-dereferences-device; line 11; mode: fast
// The host prints a result without copying it.
#include <cstdio>
__global__ void set(int* out) {
    *out = 42;
}
int main() {
    int* out;
    cudaMalloc(&out, sizeof(int));
    set<<<1, 1>>>(out);
    printf("%d\n", *out);
    cudaFree(out);
}
