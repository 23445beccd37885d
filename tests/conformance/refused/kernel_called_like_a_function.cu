// expect: a __global__ function call must be configured; line 9; mode: fast
// The launch configuration is missing.
__global__ void set(int* out) {
    out[threadIdx.x] = 1;
}
int main() {
    int* out;
    cudaMalloc(&out, 32 * sizeof(int));
    set(out);
    cudaDeviceSynchronize();
    cudaFree(out);
}
