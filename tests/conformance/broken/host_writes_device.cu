// expect: host-dereferences-device; line 8; mode: fast
// The host fills device memory in a loop.
#include <cstdio>
int main() {
    float* data;
    cudaMalloc(&data, 16 * sizeof(float));
    for (int i = 0; i < 16; i++) {
        data[i] = i;
    }
    cudaFree(data);
}
