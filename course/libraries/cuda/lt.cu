// y = relu(x w + bias) in one call of cuBLASLt; x, w and y row-major. lt [m n k] [time]
#include <algorithm>
#include <cublasLt.h>
#include "clock.cuh"

constexpr size_t WORKSPACE = 32 << 20;  // bytes that the library may use while it works

// A row-major rows × columns matrix as the library sees it: transposed, column after column.
cublasLtMatrixLayout_t transposed(int rows, int columns) {
    cublasLtMatrixLayout_t layout;
    CHECK(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, columns, rows, columns));
    return layout;
}

// What is to be computed: a product, and what happens to it before it is stored.
cublasLtMatmulDesc_t product_then(cublasLtEpilogue_t epilogue, const float* bias) {
    cublasLtMatmulDesc_t operation;
    CHECK(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                         sizeof(epilogue)));
    CHECK(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                         sizeof(bias)));
    return operation;
}

// What one problem needs, made once and used at every call.
struct Linear {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t x, w, y;
    cublasLtMatmulHeuristicResult_t way;
    Device<char> workspace{WORKSPACE};

    Linear(int m, int n, int k, cublasLtEpilogue_t epilogue, const float* bias) {
        CHECK(cublasLtCreate(&handle));
        operation = product_then(epilogue, bias);
        x = transposed(m, k);
        w = transposed(k, n);
        y = transposed(m, n);
        way = proposal();
    }

    // The library's first proposal for this very problem.
    cublasLtMatmulHeuristicResult_t proposal() {
        cublasLtMatmulPreference_t preference;
        CHECK(cublasLtMatmulPreferenceCreate(&preference));
        CHECK(cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE, sizeof(WORKSPACE)));
        cublasLtMatmulHeuristicResult_t result;
        int found = 0;
        CHECK(cublasLtMatmulAlgoGetHeuristic(handle, operation, w, x, y, y, preference, 1, &result,
                                             &found));
        CHECK(cublasLtMatmulPreferenceDestroy(preference));
        CHECK(found == 1 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED);
        return result;
    }

    void operator()(float* to, const float* from, const float* weights) {
        const float alpha = 1, beta = 0;
        CHECK(cublasLtMatmul(handle, operation, &alpha, weights, w, from, x, &beta, to, y, to, y,
                             &way.algo, workspace, WORKSPACE, nullptr));
    }

    ~Linear() {
        for (cublasLtMatrixLayout_t layout : {x, w, y})
            cublasLtMatrixLayoutDestroy(layout);
        cublasLtMatmulDescDestroy(operation);
        cublasLtDestroy(handle);
    }
};

// In float64, on the host.
std::vector<double> linear_relu(const std::vector<float>& x, const std::vector<float>& w,
                                const std::vector<float>& bias, int m, int n, int k) {
    std::vector<double> y = product(x, w, m, n, k);
    for (size_t i = 0; i < y.size(); i++)
        y[i] = std::max(0.0, y[i] + bias[i % n]);
    return y;
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int m = given.number(1, 12);  // rows of x
    const int n = given.number(2, 8);  // features out, and in:
    const int k = given.number(3, 16);
    const auto x = random_floats(m * k, 1);
    const auto w = random_floats(k * n, 2);
    const auto bias = random_floats(n, 3);
    Device<float> d_x(x), d_w(w), d_bias(bias), d_y(m * n);

    Linear linear(m, n, k, CUBLASLT_EPILOGUE_RELU_BIAS, d_bias);
    linear(d_y, d_x, d_w);
    const auto right = linear_relu(x, w, bias, m, n, k);
    require("relu(x w + bias)", largest_error(d_y.host(), right), 1e-6 * k);
    if (!wants_time(argc, argv))
        return 0;
    Linear plain(m, n, k, CUBLASLT_EPILOGUE_DEFAULT, nullptr);
    print_time("lt_relu_bias", [&] { linear(d_y, d_x, d_w); });
    print_time("lt_plain", [&] { plain(d_y, d_x, d_w); });
}
