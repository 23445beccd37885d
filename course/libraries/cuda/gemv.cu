// y = a x by cuBLAS: a handle, a stream, a call, and someone who waits.
#include <cublas_v2.h>
#include "helpers.cuh"

int main() {
    const int rows = 3, columns = 4;
    const std::vector<float> a = random_floats(rows * columns, 1);  // row after row
    const std::vector<float> x = random_floats(columns, 2);
    Device<float> d_a(a), d_x(x), d_y(rows);

    cublasHandle_t handle;  // the library's state, made once
    CHECK(cublasCreate(&handle));
    cudaStream_t stream;  // where its work goes
    CHECK(cudaStreamCreate(&stream));
    CHECK(cublasSetStream(handle, stream));

    const float alpha = 1, beta = 0;  // y = alpha a x + beta y
    CHECK(cublasSgemv(handle, CUBLAS_OP_T, columns, rows, &alpha, d_a, columns, d_x, 1, &beta, d_y,
                      1));
    CHECK(cudaStreamSynchronize(stream));  // the call has only queued the work

    require("gemv", largest_error(d_y.host(), product(a, x, rows, 1, columns)), 1e-5);
    CHECK(cublasDestroy(handle));  // and given back
    CHECK(cudaStreamDestroy(stream));
}
