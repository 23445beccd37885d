// expect: copy-size; line 8; mode: fast
// Rows and columns are exchanged in a two-dimensional copy.
#include <vector>
int main() {
    std::vector<float> host(20 * 30);
    float* device;
    cudaMalloc(&device, 20 * 20 * sizeof(float));
    cudaMemcpy2D(device, 20 * sizeof(float), host.data(), 20 * sizeof(float), 20 * sizeof(float),
                 30, cudaMemcpyHostToDevice);
    cudaFree(device);
}
