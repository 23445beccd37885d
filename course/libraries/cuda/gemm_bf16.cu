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

// Element (row, column) of the product, in float64.
double element(const std::vector<__nv_bfloat16>& a, const std::vector<__nv_bfloat16>& b, int row,
               int column, int side) {
    double sum = 0;
    for (size_t p = 0; p < side; p++) {
        const double left = __bfloat162float(a[size_t(row) * side + p]);
        const double right = __bfloat162float(b[p * side + column]);
        sum += left * right;
    }
    return sum;
}

// The largest error in some rows.
double error_of_rows(const std::vector<__nv_bfloat16>& a, const std::vector<__nv_bfloat16>& b,
                     const std::vector<__nv_bfloat16>& c, int side) {
    const int step = std::max(1, side / 64);
    std::vector<float> found;
    std::vector<double> right;
    for (int row : {0, side / 2, side - 1})
        for (int column = 0; column < side; column += step) {
            found.push_back(__bfloat162float(c[size_t(row) * side + column]));
            right.push_back(element(a, b, row, column, side));
        }
    return largest_error(found, right);
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int side = given.number(1, 24);
    const size_t size = size_t(side) * side;
    const auto a = rounded(random_floats(size, 1));
    const auto b = rounded(random_floats(size, 2));
    Device<__nv_bfloat16> d_a(a), d_b(b), d_c(size);

    cublasHandle_t handle;
    CHECK(cublasCreate(&handle));
    multiply_bf16(handle, d_c, d_a, d_b, side);
    require("gemm in bfloat16", error_of_rows(a, b, d_c.host(), side), 0.02 * std::sqrt(side));

    if (wants_time(argc, argv))
        print_time("gemm_bf16", [&] { multiply_bf16(handle, d_c, d_a, d_b, side); });
    CHECK(cublasDestroy(handle));
}
