// expect: copy-size; line 9; mode: fast
// cudaMalloc is given the number of elements, not of bytes.
#include <vector>
int main() {
    const int n = 256;
    std::vector<float> host(n, 1.0f);
    float* device;
    cudaMalloc(&device, n);
    cudaMemcpy(device, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaFree(device);
}
