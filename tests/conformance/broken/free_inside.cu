// expect: bad-free; line 6; mode: fast
// cudaFree is given a pointer that was moved along.
int main() {
    float* a;
    cudaMalloc(&a, 64);
    cudaFree(a + 4);
    cudaFree(a);
}
