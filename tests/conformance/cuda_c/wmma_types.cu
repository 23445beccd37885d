// Tensor cores: every operand type and shape, both layouts of memory; small whole numbers, so that
// every sum is exact.
#include <cstdio>
#include <cuda_bf16.h>
#include <mma.h>
#include <type_traits>
using namespace nvcuda;

// What a fragment of T is loaded from.
template <class T>
struct Memory {
    typedef T type;
};
template <>
struct Memory<wmma::precision::tf32> {
    typedef float type;
};

// D = A B + A B + 1, written column by column where the layout says so.
template <int M, int N, int K, class T, class LayoutA, class LayoutB, class Sum>
__global__ void twice(const typename Memory<T>::type* a, const typename Memory<T>::type* b, Sum* d,
                      wmma::layout_t layout, int* counts) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
    wmma::fill_fragment(sum, Sum(1));
    wmma::load_matrix_sync(fa, a, std::is_same<LayoutA, wmma::row_major>::value ? K : M);
    wmma::load_matrix_sync(fb, b, std::is_same<LayoutB, wmma::row_major>::value ? N : K);
    wmma::mma_sync(sum, fa, fb, sum);
    wmma::mma_sync(sum, fa, fb, sum);
    wmma::store_matrix_sync(d, sum, layout == wmma::mem_row_major ? N : M, layout);
    counts[0] = fa.num_elements;
    counts[1] = fb.num_elements;
    counts[2] = sum.num_elements;
}

template <int M, int N, int K, class T, class LayoutA, class LayoutB, class Sum>
void run(const char* name) {
    typedef typename Memory<T>::type Element;
    const bool a_rows = std::is_same<LayoutA, wmma::row_major>::value,
               b_rows = std::is_same<LayoutB, wmma::row_major>::value;
    Element *a, *b;
    Sum* d;
    int* counts;
    cudaMallocManaged(&a, M * K * sizeof(Element));
    cudaMallocManaged(&b, K * N * sizeof(Element));
    cudaMallocManaged(&d, M * N * sizeof(Sum));
    cudaMallocManaged(&counts, 3 * sizeof(int));
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            a[a_rows ? i * K + k : k * M + i] = Element(float((7 * i + 3 * k) % 5));
    for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++)
            b[b_rows ? k * N + j : j * K + k] = Element(float((2 * k + 5 * j) % 7));
    for (wmma::layout_t layout : {wmma::mem_row_major, wmma::mem_col_major}) {
        twice<M, N, K, T, LayoutA, LayoutB, Sum><<<1, 32>>>(a, b, d, layout, counts);
        cudaDeviceSynchronize();
        long long weighted = 0;  // each element's place counts
        for (int i = 0; i < M * N; i++)
            weighted += (i + 1) * (long long)double(d[i]);
        printf("%s %dx%dx%d %s: %lld, elements %d %d %d\n", name, M, N, K,
               layout == wmma::mem_row_major ? "rows" : "columns", weighted, counts[0], counts[1],
               counts[2]);
    }
    cudaFree(a);
    cudaFree(b);
    cudaFree(d);
    cudaFree(counts);
}

int main() {
    using wmma::col_major;
    using wmma::row_major;
    run<16, 16, 16, half, row_major, row_major, float>("half");
    run<32, 8, 16, half, col_major, row_major, float>("half");
    run<8, 32, 16, half, row_major, col_major, float>("half");
    run<16, 16, 16, __nv_bfloat16, col_major, col_major, float>("bfloat16");
    run<32, 8, 16, __nv_bfloat16, row_major, col_major, float>("bfloat16");
    run<16, 16, 8, wmma::precision::tf32, row_major, col_major, float>("tf32");
    run<16, 16, 8, wmma::precision::tf32, col_major, row_major, float>("tf32");
    run<16, 16, 16, signed char, row_major, col_major, int>("signed char");
    run<8, 32, 16, unsigned char, col_major, row_major, int>("unsigned char");
    run<8, 8, 4, double, row_major, col_major, double>("double");
}
