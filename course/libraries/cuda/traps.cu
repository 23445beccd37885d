// Mistakes that users of these libraries report, each failing and then right. traps NAME
#include <cstring>
#include <cublas_v2.h>
#include "helpers.cuh"

// ---- leading dimension: the distance from column to column, in elements

void leading_dimension(cublasHandle_t handle) {
    const int rows = 4;
    const int columns = 3;
    const int room = 6;  // of each column
    const float one = 1, zero = 0;
    const std::vector<float> host = random_floats(room * columns, 1);
    Device<float> a(host), x(std::vector<float>(columns, 1.0f)), y(rows);
    std::vector<double> right(rows, 0.0);
    for (int i = 0; i < rows * columns; i++)
        right[i % rows] += host[i / rows * room + i % rows];

    for (int leading : {columns, rows, room}) {
        const cublasStatus_t status =
            cublasSgemv(handle, CUBLAS_OP_N, rows, columns, &one, a, leading, x, 1, &zero, y, 1);
        const bool fine = status == CUBLAS_STATUS_SUCCESS;
        const bool same = fine && largest_error(y.host(), right) < 1e-5;
        std::printf("leading dimension %d: %s, %s\n", leading, cublasGetStatusName(status),
                    same ? "right" : "WRONG");
    }
}

// ---- rows and columns: a square result is never refused

void rows_and_columns(cublasHandle_t handle) {
    const int n = 3;
    const float one = 1, zero = 0;
    const auto a = random_floats(n * n, 1);
    const auto b = random_floats(n * n, 2);
    const std::vector<double> right = product(a, b, n, n, n);
    Device<float> d_a(a), d_b(b), d_c(n * n);

    const auto multiply = [&](const float* first, const float* second) {
        CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, first, n, second, n,
                          &zero, d_c, n));
        return largest_error(d_c.host(), right) < 1e-5 ? "right" : "WRONG";
    };
    std::printf("a, then b: %s\n", multiply(d_a, d_b));
    std::printf("b, then a: %s\n", multiply(d_b, d_a));
}

// ---- stream: a handle works where it was told last

size_t captured(cublasHandle_t handle, cudaStream_t stream, const Device<float>& a, int n) {
    const float one = 1, zero = 0;
    Device<float> c(n * n);
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, a, n, &zero, c, n));
    CHECK(cudaStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaDeviceSynchronize());
    return nodes;
}

void stream(cublasHandle_t handle) {
    const int n = 8;
    cudaStream_t mine, of_somebody_else;
    CHECK(cudaStreamCreate(&mine));
    CHECK(cudaStreamCreate(&of_somebody_else));
    Device<float> a(random_floats(n * n, 1));

    CHECK(cublasSetStream(handle, mine));
    CHECK(cublasSetStream(handle, of_somebody_else));  // a function far away, with our handle
    std::printf("one handle for all: %s\n",
                captured(handle, mine, a, n) ? "the work is in my stream" : "NOT in my stream");

    cublasHandle_t own;
    CHECK(cublasCreate(&own));
    CHECK(cublasSetStream(own, mine));
    std::printf("a handle of my own: %s\n",
                captured(own, mine, a, n) ? "the work is in my stream" : "NOT in my stream");
    CHECK(cublasDestroy(own));
    CHECK(cublasSetStream(handle, nullptr));
    CHECK(cudaStreamDestroy(mine));
    CHECK(cudaStreamDestroy(of_somebody_else));
}

// ---- late: a kernel breaks, and the library is the first to say so

__global__ void writes_to_nowhere(float* nowhere) {
    *nowhere = 1;
}

void late(cublasHandle_t handle) {
    const int n = 8;
    const float one = 1;
    Device<float> x(random_floats(n, 1)), y(random_floats(n, 2));
    writes_to_nowhere<<<1, 1>>>(nullptr);
    std::printf("the launch of a broken kernel: %s\n", cudaGetErrorName(cudaGetLastError()));
    std::printf("waiting for it: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    const cublasStatus_t status = cublasSaxpy(handle, n, &one, x, 1, y, 1);
    std::printf("a right call of cuBLAS after it: %s\n", cublasGetStatusName(status));
    std::printf("and everything else: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}

// ---- tf32: float in, float out, and ten bits in between

void tf32(cublasHandle_t handle) {
    const int n = 64;
    const float one = 1, zero = 0;
    const auto a = random_floats(n * n, 1);
    const auto b = random_floats(n * n, 2);
    const std::vector<double> right = product(a, b, n, n, n);
    Device<float> d_a(a), d_b(b), d_c(n * n);
    for (cublasMath_t mode : {CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH}) {
        CHECK(cublasSetMathMode(handle, mode));
        CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, d_b, n, d_a, n, &zero,
                          d_c, n));
        const double error = largest_error(d_c.host(), right);
        std::printf("%s: largest error %.0e\n", mode == CUBLAS_DEFAULT_MATH ? "default" : "TF32   ",
                    error);
    }
    CHECK(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
}

int main(int argc, char** argv) {
    struct {
        const char* name;
        void (*run)(cublasHandle_t);
    } traps[] = {{"leading_dimension", leading_dimension},
                 {"rows_and_columns", rows_and_columns},
                 {"stream", stream},
                 {"tf32", tf32},
                 {"late", late}};
    for (const auto& trap : traps) {
        if (argc > 1 && std::strcmp(argv[1], trap.name))
            continue;
        cublasHandle_t handle;
        CHECK(cublasCreate(&handle));
        trap.run(handle);
        cublasDestroy(handle);
    }
}
