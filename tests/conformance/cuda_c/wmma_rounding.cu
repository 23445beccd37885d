// Tensor cores: rounding to TF32, sums in half precision, whole numbers that saturate, element-wise
// work on fragments.
#include <climits>
#include <cstdio>
#include <mma.h>
using namespace nvcuda;

__global__ void rounded(const float* in, float* out) {
    for (int i = 0; i < 8; i++)
        out[i] = wmma::__float_to_tf32(in[i]);
}

// A has 1 + (row + 1) 2^-12 in its first column, B whole numbers in its first row: the product
// shows A's rounding.
__global__ void tf32(const float* a, const float* b, float* d) {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::load_matrix_sync(fa, a, 8);
    wmma::load_matrix_sync(fb, b, 16);
    for (int i = 0; i < fa.num_elements; i++)
        fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
    for (int i = 0; i < fb.num_elements; i++)
        fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
    wmma::fill_fragment(sum, 0.0f);
    wmma::mma_sync(sum, fa, fb, sum);
    wmma::store_matrix_sync(d, sum, 16, wmma::mem_row_major);
}

// Sums in half, from a sum in float; A is halved in place.
__global__ void halves(const half* a, const half* b, half* d) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> first;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> second;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    for (int i = 0; i < fa.num_elements; i++)
        fa.x[i] = __hmul(fa.x[i], __float2half(0.5f));
    wmma::fill_fragment(first, 3.0f);
    wmma::mma_sync(second, fa, fb, first);
    for (int i = 0; i < second.num_elements; i++)
        second.x[i] = __hadd(second.x[i], __float2half(1.0f));
    wmma::mma_sync(second, fa, fb, second);
    wmma::store_matrix_sync(d, second, 16, wmma::mem_row_major);
}

__global__ void bytes(const signed char* a, const signed char* b, int* d, int start,
                      bool saturate) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::fill_fragment(sum, start);
    if (saturate)
        wmma::mma_sync(sum, fa, fb, sum, true);
    else
        wmma::mma_sync(sum, fa, fb, sum);
    wmma::store_matrix_sync(d, sum, 16, wmma::mem_row_major);
}

int main() {
    float *in, *out, *a, *b;
    half *ha, *hb, *hd;
    signed char *ca, *cb;
    int* cd;
    cudaMallocManaged(&in, 8 * sizeof(float));
    cudaMallocManaged(&out, 256 * sizeof(float));
    cudaMallocManaged(&a, 128 * sizeof(float));
    cudaMallocManaged(&b, 128 * sizeof(float));
    cudaMallocManaged(&ha, 256 * sizeof(half));
    cudaMallocManaged(&hb, 256 * sizeof(half));
    cudaMallocManaged(&hd, 256 * sizeof(half));
    cudaMallocManaged(&ca, 256);
    cudaMallocManaged(&cb, 256);
    cudaMallocManaged(&cd, 256 * sizeof(int));

    const float values[8] = {1.0f,        0.1f,  -0.1f, 1.00048828125f, 1.0004f, -1.00048828125f,
                             3.14159265f, 1e-20f};
    for (int i = 0; i < 8; i++)
        in[i] = values[i];
    rounded<<<1, 1>>>(in, out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 8; i++)
        printf("%a ", out[i]);
    printf("\n");

    for (int i = 0; i < 128; i++) {
        a[i] = i % 8 == 0 ? 1.0f + (i / 8 + 1) / 4096.0f : 0.0f;
        b[i] = i < 16 ? float(i) : 0.0f;
    }
    tf32<<<1, 32>>>(a, b, out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 16; i++)
        printf("%g ", (double(out[i * 16 + i]) - i) * 1024);
    printf("\n");

    for (int i = 0; i < 256; i++) {
        ha[i] = __float2half(float(2 * (i % 3)));
        hb[i] = __float2half(float(i % 5));
    }
    halves<<<1, 32>>>(ha, hb, hd);
    cudaDeviceSynchronize();
    for (int i = 0; i < 256; i += 17)
        printf("%g ", __half2float(hd[i]));
    printf("\n");

    for (int i = 0; i < 256; i++) {
        ca[i] = (signed char)(i / 16 % 2 ? -128 : 127);
        cb[i] = (signed char)(i / 16 < 8 ? 127 : -1);
    }
    for (int saturate = 0; saturate < 2; saturate++)
        for (int start : {0, INT_MAX - 1000, INT_MIN + 1000}) {
            if (!saturate && start)
                continue;
            bytes<<<1, 32>>>(ca, cb, cd, start, saturate);
            cudaDeviceSynchronize();
            printf("%d %d %d %d\n", cd[0], cd[15], cd[16], cd[31]);
        }
    cudaFree(in);
    cudaFree(out);
    cudaFree(a);
    cudaFree(b);
    cudaFree(ha);
    cudaFree(hb);
    cudaFree(hd);
    cudaFree(ca);
    cudaFree(cb);
    cudaFree(cd);
}
