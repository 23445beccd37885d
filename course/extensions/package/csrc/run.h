// What the host calls, whichever binding it was reached by: once for the GPU (run.cu), once for
// the CPU (loops.cpp). Pointers are to `n` numbers of `type` that lie next to one another.
#pragma once

#include <cstdint>

enum class Type { float16, bfloat16, float32, float64 };

struct Coefficients {
    double a, b, c;
};

namespace gpu {
// stream: a cudaStream_t of the device that is current. Returns 0, or CUDA's error code.
int forward(Type type, void* y, const void* x, Coefficients with, int64_t n, void* stream);
int backward(Type type, void* dx, const void* dy, const void* x, Coefficients with, int64_t n,
             void* stream);
}  // namespace gpu

namespace cpu {
void forward(Type type, void* y, const void* x, Coefficients with, int64_t n);
void backward(Type type, void* dx, const void* dy, const void* x, Coefficients with, int64_t n);
}  // namespace cpu
