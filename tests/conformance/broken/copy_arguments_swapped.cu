// expect: copy-direction; line 8; mode: fast
// Source and destination are exchanged: the destination comes first.
#include <vector>
int main() {
    std::vector<int> host(16, 3);
    int* device;
    cudaMalloc(&device, 16 * sizeof(int));
    cudaMemcpy(host.data(), device, 16 * sizeof(int), cudaMemcpyHostToDevice);
    cudaFree(device);
}
