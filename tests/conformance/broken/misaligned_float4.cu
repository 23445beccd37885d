// expect: misaligned; line 6; mode: check
// A float4 is read at an address that is no multiple of 16.
#include <cstdio>
__global__ void sum(const float* in, float* out) {
    const float4* quads = reinterpret_cast<const float4*>(in + 1);
    float4 q = quads[threadIdx.x];
    out[threadIdx.x] = q.x + q.y + q.z + q.w;
}
int main() {
    float *in, *out;
    cudaMalloc(&in, 36 * sizeof(float));
    cudaMalloc(&out, 8 * sizeof(float));
    cudaMemset(in, 0, 36 * sizeof(float));
    sum<<<1, 8>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
