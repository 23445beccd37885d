// The same formula in a loop, for tensors in the host's memory.
#include "run.h"

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include "formula.h"

namespace {

template <typename Number>
void loop_forward(void* out, const void* in, Coefficients with, int64_t n) {
    using Real = typename Computed<Number>::type;
    const Real a = with.a, b = with.b, c = with.c;
    auto* y = static_cast<Number*>(out);
    const auto* x = static_cast<const Number*>(in);
    for (int64_t i = 0; i < n; ++i)
        y[i] = static_cast<Number>(value_of<Real>(static_cast<Real>(x[i]), a, b, c));
}

template <typename Number>
void loop_backward(void* out, const void* of_y, const void* in, Coefficients with, int64_t n) {
    using Real = typename Computed<Number>::type;
    const Real a = with.a, b = with.b;
    auto* dx = static_cast<Number*>(out);
    const auto* dy = static_cast<const Number*>(of_y);
    const auto* x = static_cast<const Number*>(in);
    for (int64_t i = 0; i < n; ++i) {
        const Real slope = slope_of<Real>(static_cast<Real>(x[i]), a, b);
        dx[i] = static_cast<Number>(static_cast<Real>(dy[i]) * slope);
    }
}

}  // namespace

using torch::headeronly::BFloat16;
using torch::headeronly::Half;

void cpu::forward(Type type, void* y, const void* x, Coefficients with, int64_t n) {
    switch (type) {
        case Type::float16:
            return loop_forward<Half>(y, x, with, n);
        case Type::bfloat16:
            return loop_forward<BFloat16>(y, x, with, n);
        case Type::float32:
            return loop_forward<float>(y, x, with, n);
        case Type::float64:
            return loop_forward<double>(y, x, with, n);
    }
}

void cpu::backward(Type type, void* dx, const void* dy, const void* x, Coefficients with,
                   int64_t n) {
    switch (type) {
        case Type::float16:
            return loop_backward<Half>(dx, dy, x, with, n);
        case Type::bfloat16:
            return loop_backward<BFloat16>(dx, dy, x, with, n);
        case Type::float32:
            return loop_backward<float>(dx, dy, x, with, n);
        case Type::float64:
            return loop_backward<double>(dx, dy, x, with, n);
    }
}
