// expect: copy-size; line 6; mode: fast
// The memory is cleared in elements of another type than it was allocated for.
int main() {
    float* data;
    cudaMalloc(&data, 100 * sizeof(float));
    cudaMemset(data, 0, 100 * sizeof(double));
    cudaFree(data);
}
