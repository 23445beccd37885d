// c = a b with matrices that stay on the host: cuBLASXt. xt [side] [time]
#include <chrono>
#include <cublasXt.h>
#include "helpers.cuh"

// The library cuts the matrices into tiles, copies tiles to the GPUs and back, and multiplies.
void multiply(cublasXtHandle_t handle, float* c, const float* a, const float* b, size_t side) {
    const float alpha = 1, beta = 0;
    CHECK(cublasXtSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &alpha, b, side, a,
                        side, &beta, c, side));
}

double error_of_row(const std::vector<float>& c, const std::vector<float>& a,
                    const std::vector<float>& b, size_t row, size_t side) {
    std::vector<double> right(side, 0.0);
    for (size_t p = 0; p < side; p++)
        for (size_t j = 0; j < side; j++)
            right[j] += double(a[row * side + p]) * b[p * side + j];
    const auto begin = c.begin() + row * side;
    return largest_error(std::vector<float>(begin, begin + side), right);
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const size_t side = given.number(1, 64);
    const auto a = random_floats(side * side, 1);
    const auto b = random_floats(side * side, 2);
    std::vector<float> c(side * side, NAN);

    cublasXtHandle_t handle;
    CHECK(cublasXtCreate(&handle));
    int devices[] = {0};
    CHECK(cublasXtDeviceSelect(handle, 1, devices));
    CHECK(cublasXtSetBlockDim(handle, 2048));
    multiply(handle, c.data(), a.data(), b.data(), side);
    require("a row of c, on the host", error_of_row(c, a, b, side / 2, side), 1e-6 * side);

    if (argc > 2) {
        const auto begin = std::chrono::steady_clock::now();
        multiply(handle, c.data(), a.data(), b.data(), side);
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - begin;
        std::printf("TIME xt %.6f 0\n", took.count());
    }
    CHECK(cublasXtDestroy(handle));
}
