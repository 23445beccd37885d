// expect: kernel-called-like-a-function; line 10; mode: fast
// The launch configuration is missing, and no compiler sees it.
__global__ void set(int* out) {
    out[threadIdx.x] = 1;
}
int main() {
    int* out;
    cudaMalloc(&out, 32 * sizeof(int));
    auto* const function = set;
    function(out);
    cudaDeviceSynchronize();
    cudaFree(out);
}
