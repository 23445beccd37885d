// expect: cublasStrsm; line 6; mode: fast
// A function of cuBLAS that is not offered.
#include <cublas_v2.h>
int main() {
    cublasHandle_t h;
    cublasStrsm(h, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 1, 1,
                nullptr, nullptr, 1, nullptr, 1);
}
