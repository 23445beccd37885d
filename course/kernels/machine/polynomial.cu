// nvcc -arch=sm_90 -cubin polynomial.cu
// So many multiply-adds for each number: polynomial.sass holds its machine code, for who has no
// compiler.
__global__ void polynomial(float* out, const float* x, int n, int terms) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int k = 0; k < terms; ++k)
        sum = sum * x[i] + 0.5f;
    out[i] = sum;
}
