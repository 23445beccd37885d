// expect: copy-size; line 9; mode: fast
// More is copied back than was allocated.
#include <vector>
int main() {
    const int n = 100;
    std::vector<double> host(n);
    float* device;
    cudaMalloc(&device, n * sizeof(float));
    cudaMemcpy(host.data(), device, n * sizeof(double), cudaMemcpyDeviceToHost);
    cudaFree(device);
}
