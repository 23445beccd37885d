// expect: host-pointer-in-kernel; line 12; mode: fast
// The names of the two arrays are mixed up at the launch.
#include <vector>
__global__ void set(float* out, int n) {
    if (threadIdx.x < n)
        out[threadIdx.x] = 1;
}
int main() {
    std::vector<float> h_out(32);
    float* d_out;
    cudaMalloc(&d_out, 32 * sizeof(float));
    set<<<1, 32>>>(h_out.data(), 32);
    cudaDeviceSynchronize();
    cudaFree(d_out);
}
