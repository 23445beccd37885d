// c = a b in bfloat16 on tensor cores, sums in float32, all row-major. gemm_bf16 [side] [time]
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include "clock.cuh"

void multiply_bf16(cublasHandle_t handle, __nv_bfloat16* c, const __nv_bfloat16* a,
                   const __nv_bfloat16* b, int side) {
    const float alpha = 1, beta = 0;
    CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &alpha, b, CUDA_R_16BF,
                       side, a, CUDA_R_16BF, side, &beta, c, CUDA_R_16BF, side, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT));
}

std::vector<__nv_bfloat16> rounded(const std::vector<float>& values) {
    std::vector<__nv_bfloat16> result(values.size());
    for (size_t i = 0; i < values.size(); i++)
        result[i] = __float2bfloat16(values[i]);
    return result;
}

// The largest error of some rows, against float64.
double error_of_rows(const std::vector<__nv_bfloat16>& a, const std::vector<__nv_bfloat16>& b,
                     const std::vector<__nv_bfloat16>& c, int side) {
    double largest = 0;
    for (int row : {0, side / 2, side - 1})
        for (int column = 0; column < side; column += std::max(1, side / 64)) {
            double right = 0;
            for (int p = 0; p < side; p++)
                right += double(__bfloat162float(a[size_t(row) * side + p])) *
                         __bfloat162float(b[size_t(p) * side + column]);
            const double error =
                std::fabs(__bfloat162float(c[size_t(row) * side + column]) - right);
            largest = error <= largest ? largest : error;
        }
    return largest;
}

int main(int argc, char** argv) {
    const int side = argc > 1 && std::atoi(argv[1]) ? std::atoi(argv[1]) : 24;
    const auto a = rounded(random_floats(size_t(side) * side, 1));
    const auto b = rounded(random_floats(size_t(side) * side, 2));
    Device<__nv_bfloat16> d_a(a), d_b(b), d_c(size_t(side) * side);

    cublasHandle_t handle;
    CHECK(cublasCreate(&handle));
    multiply_bf16(handle, d_c, d_a, d_b, side);
    require("gemm in bfloat16", error_of_rows(a, b, d_c.host(), side), 0.02 * std::sqrt(side));

    if (wants_time(argc, argv))
        print_time("gemm_bf16", [&] { multiply_bf16(handle, d_c, d_a, d_b, side); });
    CHECK(cublasDestroy(handle));
}
