// The package's kernels under plain names, a type each, for compilers of kernels alone: NVRTC and
// the CPU runtime.
#include "../package/csrc/kernels.cuh"

__global__ void polynomial_float16(__half* y, const __half* x, float a, float b, float c,
                                   long long n) {
    fill_values(y, x, a, b, c, n);
}

__global__ void polynomial_backward_float16(__half* dx, const __half* dy, const __half* x, float a,
                                            float b, long long n) {
    fill_slopes(dx, dy, x, a, b, n);
}

__global__ void polynomial_bfloat16(__nv_bfloat16* y, const __nv_bfloat16* x, float a, float b,
                                    float c, long long n) {
    fill_values(y, x, a, b, c, n);
}

__global__ void polynomial_backward_bfloat16(__nv_bfloat16* dx, const __nv_bfloat16* dy,
                                             const __nv_bfloat16* x, float a, float b,
                                             long long n) {
    fill_slopes(dx, dy, x, a, b, n);
}

__global__ void polynomial_float32(float* y, const float* x, float a, float b, float c,
                                   long long n) {
    fill_values(y, x, a, b, c, n);
}

__global__ void polynomial_backward_float32(float* dx, const float* dy, const float* x, float a,
                                            float b, long long n) {
    fill_slopes(dx, dy, x, a, b, n);
}

__global__ void polynomial_float64(double* y, const double* x, double a, double b, double c,
                                   long long n) {
    fill_values(y, x, a, b, c, n);
}

__global__ void polynomial_backward_float64(double* dx, const double* dy, const double* x, double a,
                                            double b, long long n) {
    fill_slopes(dx, dy, x, a, b, n);
}
