// y = x wᵀ with 8-bit floats and a scale for each matrix: cuBLASLt. lt_fp8 [side] [time]
#include <algorithm>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include "clock.cuh"

constexpr size_t WORKSPACE = 64 << 20;
constexpr float LARGEST = 448;  // of the format e4m3

struct Scaled {
    std::vector<__nv_fp8_e4m3> values;
    std::vector<float> scale;  // one number: value × scale is what was meant

    explicit Scaled(const std::vector<float>& exact) : scale(1, 0) {
        for (float x : exact)
            scale[0] = std::max(scale[0], std::fabs(x) / LARGEST);
        for (float x : exact)
            values.push_back(__nv_fp8_e4m3(x / scale[0]));
    }
};

cublasLtMatrixLayout_t columns_of(cudaDataType type, int rows, int columns) {
    cublasLtMatrixLayout_t layout;
    CHECK(cublasLtMatrixLayoutCreate(&layout, type, rows, columns, rows));
    return layout;
}

// wᵀ x to the column-major library: the arrangement that every GPU with 8-bit products takes.
cublasLtMatmulDesc_t transposed_product(const float* w_scale, const float* x_scale) {
    cublasLtMatmulDesc_t operation;
    const cublasOperation_t transpose = CUBLAS_OP_T;
    CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                         sizeof(transpose)));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &w_scale,
                                         sizeof(w_scale)));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &x_scale,
                                         sizeof(x_scale)));
    return operation;
}

// Root of the mean squared error over the root of the mean square, in some rows.
double relative_error(const std::vector<__nv_bfloat16>& y, const std::vector<float>& x,
                      const std::vector<float>& w, int side) {
    double errors = 0, squares = 0;
    for (int row : {0, side / 2, side - 1})
        for (int column = 0; column < side; column += 7) {
            double right = 0;
            for (int p = 0; p < side; p++)
                right += double(x[size_t(row) * side + p]) * w[size_t(column) * side + p];
            const double error = __bfloat162float(y[size_t(row) * side + column]) - right;
            errors += error * error;
            squares += right * right;
        }
    return std::sqrt(errors / squares);
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int side = given.number(1, 256);
    const size_t size = size_t(side) * side;
    const auto x = random_floats(size, 1);
    const auto w = random_floats(size, 2);
    const Scaled small_x(x), small_w(w);
    Device<__nv_fp8_e4m3> d_x(small_x.values), d_w(small_w.values);
    Device<float> x_scale(small_x.scale), w_scale(small_w.scale);
    Device<__nv_bfloat16> y(size);
    Device<char> workspace(WORKSPACE);

    cublasLtHandle_t handle;
    CHECK(cublasLtCreate(&handle));
    cublasLtMatmulDesc_t operation = transposed_product(w_scale, x_scale);
    cublasLtMatrixLayout_t in = columns_of(CUDA_R_8F_E4M3, side, side);
    cublasLtMatrixLayout_t out = columns_of(CUDA_R_16BF, side, side);
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &WORKSPACE, sizeof(WORKSPACE)));
    cublasLtMatmulHeuristicResult_t way;
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, operation, in, in, out, out, preference, 1, &way,
                                         &found));
    const float alpha = 1, beta = 0;
    const auto multiply = [&] {
        CHECK(cublasLtMatmul(handle, operation, &alpha, d_w, in, d_x, in, &beta, y, out, y, out,
                             &way.algo, workspace, WORKSPACE, nullptr));
    };
    multiply();
    const double error = relative_error(y.host(), x, w, side);
    std::printf("relative error of 8-bit inputs: %.3f\n", error);
    require("fp8 product", error, 0.06);
    if (wants_time(argc, argv))
        print_time("lt_fp8", multiply);
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
    CHECK(cublasLtMatrixLayoutDestroy(in));
    CHECK(cublasLtMatrixLayoutDestroy(out));
    CHECK(cublasLtMatmulDescDestroy(operation));
    CHECK(cublasLtDestroy(handle));
}
