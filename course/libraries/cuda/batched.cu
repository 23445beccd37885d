// Many small products of one shape in one call, row-major. batched [count] [time]
#include <cublas_v2.h>
#include "clock.cuh"

constexpr int SIDE = 32;
constexpr long long STRIDE = SIDE * SIDE;  // from one matrix to the next, in elements

void multiply_all(cublasHandle_t handle, float* c, const float* a, const float* b, int count) {
    const float alpha = 1, beta = 0;
    CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, SIDE, SIDE, SIDE, &alpha, b,
                                    SIDE, STRIDE, a, SIDE, STRIDE, &beta, c, SIDE, STRIDE, count));
}

// Matrix number i of many.
std::vector<float> matrix(const std::vector<float>& all, int i) {
    const auto begin = all.begin() + i * STRIDE;
    return std::vector<float>(begin, begin + STRIDE);
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int count = given.number(1, 6);
    const auto a = random_floats(count * STRIDE, 1);
    const auto b = random_floats(count * STRIDE, 2);
    Device<float> d_a(a), d_b(b), d_c(count * STRIDE);

    cublasHandle_t handle;
    CHECK(cublasCreate(&handle));
    multiply_all(handle, d_c, d_a, d_b, count);
    const std::vector<float> c = d_c.host();
    double largest = 0;
    for (int i : {0, count / 2, count - 1}) {
        const auto right = product(matrix(a, i), matrix(b, i), SIDE, SIDE, SIDE);
        largest = std::fmax(largest, largest_error(matrix(c, i), right));
    }
    require("batched gemm", largest, 1e-5);

    if (wants_time(argc, argv))
        print_time("batched", [&] { multiply_all(handle, d_c, d_a, d_b, count); });
    CHECK(cublasDestroy(handle));
}
