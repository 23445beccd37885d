// expect: misaligned; line 10; mode: check
// Rows that begin every 36 bytes: tensor cores load 16 bytes at a time.
#include <mma.h>
using namespace nvcuda;
__global__ void product(const half* a, const half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 18);
    wmma::fill_fragment(sum, 0.0f);
    wmma::mma_sync(sum, fa, fb, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
int main() {
    half *a, *b;
    float* c;
    cudaMalloc(&a, 512);
    cudaMalloc(&b, 576);
    cudaMalloc(&c, 1024);
    product<<<1, 32>>>(a, b, c);
    cudaDeviceSynchronize();
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
}
