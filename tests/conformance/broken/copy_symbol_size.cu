// expect: copy-size; line 9; mode: fast
// Nine weights are copied into a constant array of eight.
__constant__ float weights[8];
__global__ void use(float* out) {
    *out = weights[7];
}
int main() {
    float host[9] = {};
    cudaMemcpyToSymbol(weights, host, sizeof(host));
    float* out;
    cudaMalloc(&out, sizeof(float));
    use<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    cudaFree(out);
}
