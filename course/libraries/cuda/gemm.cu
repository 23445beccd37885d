// c = a b by cuBLAS in float32, all three row-major. gemm [m n k] [time]
#include <cublas_v2.h>
#include "clock.cuh"

// Row-major c (m × n) is, to a column-major library, its transpose: cᵀ = bᵀ aᵀ.
void multiply(cublasHandle_t handle, float* c, const float* a, const float* b, int m, int n,
              int k) {
    const float alpha = 1, beta = 0;
    CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &alpha, b, n, a, k, &beta, c, n));
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int m = given.number(1, 5);
    const int n = given.number(2, 7);
    const int k = given.number(3, 3);
    const auto a = random_floats(m * k, 1);
    const auto b = random_floats(k * n, 2);
    Device<float> d_a(a), d_b(b), d_c(m * n);

    cublasHandle_t handle;
    CHECK(cublasCreate(&handle));
    multiply(handle, d_c, d_a, d_b, m, n, k);
    const auto right = product(a, b, m, n, k);
    require("gemm", largest_error(d_c.host(), right), 1e-6 * k);

    if (wants_time(argc, argv))
        print_time("gemm", [&] { multiply(handle, d_c, d_a, d_b, m, n, k); });
    CHECK(cublasDestroy(handle));
}
