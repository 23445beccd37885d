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

int main(int argc, char** argv) {
    const int count = argc > 1 && std::atoi(argv[1]) ? std::atoi(argv[1]) : 6;
    const auto a = random_floats(count * STRIDE, 1), b = random_floats(count * STRIDE, 2);
    Device<float> d_a(a), d_b(b), d_c(count * STRIDE);

    cublasHandle_t handle;
    CHECK(cublasCreate(&handle));
    multiply_all(handle, d_c, d_a, d_b, count);
    const std::vector<float> c = d_c.host();
    double largest = 0;
    for (int i : {0, count / 2, count - 1}) {
        const auto part = [i](const std::vector<float>& all) {
            return std::vector<float>(all.begin() + i * STRIDE, all.begin() + (i + 1) * STRIDE);
        };
        const auto right = product(part(a), part(b), SIDE, SIDE, SIDE);
        largest = std::max(largest, largest_error(part(c), right));
    }
    require("batched gemm", largest, 1e-5);

    if (wants_time(argc, argv))
        print_time("batched", [&] { multiply_all(handle, d_c, d_a, d_b, count); });
    CHECK(cublasDestroy(handle));
}
