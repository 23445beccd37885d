// expect: double-free; line 8; mode: fast
// Two names, one array.
int main() {
    float *a, *b;
    cudaMalloc(&a, 64);
    b = a;
    cudaFree(a);
    cudaFree(b);
}
