// expect: warp-diverged; line 13 or 15; mode: check
// Both halves of the warp load the matrix, but each in a line of its own: two instructions.
#include <cstdio>
#include <mma.h>
using namespace nvcuda;
__global__ void copy(float* to, const half* from) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(b, from, 16);
    if (threadIdx.x < 16)
        wmma::load_matrix_sync(a, from, 16);
    else
        wmma::load_matrix_sync(a, from, 16);
    wmma::mma_sync(sum, a, b, sum);
    wmma::store_matrix_sync(to, sum, 16, wmma::mem_row_major);
}
int main() {
    half* from;
    float* to;
    cudaMalloc(&from, 256 * sizeof(half));
    cudaMalloc(&to, 256 * sizeof(float));
    cudaMemset(from, 0, 256 * sizeof(half));
    copy<<<1, 32>>>(to, from);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(from);
    cudaFree(to);
}
