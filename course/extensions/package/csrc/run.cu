// The kernels' launches: which type, how many blocks, which stream.
#include "kernels.cuh"
#include "run.h"

namespace {

constexpr int THREADS = 256;
constexpr int64_t MOST_BLOCKS = 1 << 16;

int blocks_for(int64_t n) {
    const int64_t blocks = (n + THREADS - 1) / THREADS;
    return static_cast<int>(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

template <typename Number>
int launch_forward(void* y, const void* x, Coefficients with, int64_t n, cudaStream_t stream) {
    using Real = typename Computed<Number>::type;
    polynomial<Number><<<blocks_for(n), THREADS, 0, stream>>>(
        static_cast<Number*>(y), static_cast<const Number*>(x), static_cast<Real>(with.a),
        static_cast<Real>(with.b), static_cast<Real>(with.c), n);
    return cudaGetLastError();
}

template <typename Number>
int launch_backward(void* dx, const void* dy, const void* x, Coefficients with, int64_t n,
                    cudaStream_t stream) {
    using Real = typename Computed<Number>::type;
    polynomial_backward<Number><<<blocks_for(n), THREADS, 0, stream>>>(
        static_cast<Number*>(dx), static_cast<const Number*>(dy), static_cast<const Number*>(x),
        static_cast<Real>(with.a), static_cast<Real>(with.b), n);
    return cudaGetLastError();
}

}  // namespace

int gpu::forward(Type type, void* y, const void* x, Coefficients with, int64_t n, void* stream) {
    if (n == 0)
        return 0;  // a grid of no blocks is an error
    const auto on = static_cast<cudaStream_t>(stream);
    switch (type) {
        case Type::float16:
            return launch_forward<__half>(y, x, with, n, on);
        case Type::bfloat16:
            return launch_forward<__nv_bfloat16>(y, x, with, n, on);
        case Type::float32:
            return launch_forward<float>(y, x, with, n, on);
        case Type::float64:
            return launch_forward<double>(y, x, with, n, on);
    }
    return cudaErrorInvalidValue;
}

int gpu::backward(Type type, void* dx, const void* dy, const void* x, Coefficients with, int64_t n,
                  void* stream) {
    if (n == 0)
        return 0;
    const auto on = static_cast<cudaStream_t>(stream);
    switch (type) {
        case Type::float16:
            return launch_backward<__half>(dx, dy, x, with, n, on);
        case Type::bfloat16:
            return launch_backward<__nv_bfloat16>(dx, dy, x, with, n, on);
        case Type::float32:
            return launch_backward<float>(dx, dy, x, with, n, on);
        case Type::float64:
            return launch_backward<double>(dx, dy, x, with, n, on);
    }
    return cudaErrorInvalidValue;
}
