// Function objects, and the placeholders _1 ... _4 that make them of expressions: 2 * _1 + _2.
#pragma once
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include "../../cuda/std/functional"  // NVIDIA's headers bring them, too
#include "../../cuda/std/tuple"
#include "../version.h"
#include "../../macros_aside.inc"

namespace thrust {
template <class T = void>
using plus = std::plus<T>;
template <class T = void>
using minus = std::minus<T>;
template <class T = void>
using multiplies = std::multiplies<T>;
template <class T = void>
using divides = std::divides<T>;
template <class T = void>
using modulus = std::modulus<T>;
template <class T = void>
using negate = std::negate<T>;
template <class T = void>
using equal_to = std::equal_to<T>;
template <class T = void>
using not_equal_to = std::not_equal_to<T>;
template <class T = void>
using greater = std::greater<T>;
template <class T = void>
using less = std::less<T>;
template <class T = void>
using greater_equal = std::greater_equal<T>;
template <class T = void>
using less_equal = std::less_equal<T>;
template <class T = void>
using logical_and = std::logical_and<T>;
template <class T = void>
using logical_or = std::logical_or<T>;
template <class T = void>
using logical_not = std::logical_not<T>;
template <class T = void>
using bit_and = std::bit_and<T>;
template <class T = void>
using bit_or = std::bit_or<T>;
template <class T = void>
using bit_xor = std::bit_xor<T>;

template <class T = void>
struct maximum {
    __host__ __device__ T operator()(const T& a, const T& b) const {
        return a < b ? b : a;
    }
};
template <>
struct maximum<void> {
    template <class A, class B>
    __host__ __device__ auto operator()(const A& a, const B& b) const {
        return a < b ? b : a;
    }
};
template <class T = void>
struct minimum {
    __host__ __device__ T operator()(const T& a, const T& b) const {
        return b < a ? b : a;
    }
};
template <>
struct minimum<void> {
    template <class A, class B>
    __host__ __device__ auto operator()(const A& a, const B& b) const {
        return b < a ? b : a;
    }
};
template <class T = void>
struct square {
    __host__ __device__ T operator()(const T& a) const {
        return a * a;
    }
};
template <class T = void>
struct identity {
    template <class U>
    __host__ __device__ U operator()(const U& a) const {
        return a;
    }
};
template <class T>
__host__ __device__ T min(const T& a, const T& b) {
    return b < a ? b : a;
}
template <class T, class F>
__host__ __device__ T min(const T& a, const T& b, F less) {
    return less(b, a) ? b : a;
}
template <class T>
__host__ __device__ T max(const T& a, const T& b) {
    return a < b ? b : a;
}
template <class T, class F>
__host__ __device__ T max(const T& a, const T& b, F less) {
    return less(a, b) ? b : a;
}
template <class F>
auto not_fn(F f) {
    return std::not_fn(f);
}

namespace detail {
struct Expression {};
template <class F>
struct Composed : Expression {
    F f;
    explicit Composed(F f) : f(f) {}
    template <class... A>
    __host__ __device__ auto operator()(const A&... a) const {
        return f(a...);
    }
};
template <int N>
struct Argument : Expression {
    template <class... A>
    __host__ __device__ auto operator()(const A&... a) const {
        return std::get<N>(std::make_tuple(a...));
    }
};
template <class X, class... A>
__host__ __device__ auto evaluate(const X& x, const A&... a) {
    if constexpr (std::is_base_of_v<Expression, X>)
        return x(a...);
    else
        return x;
}
template <class X, class Y>
constexpr bool any_expression =
    std::is_base_of_v<Expression, X> || std::is_base_of_v<Expression, Y>;
#define CUDA_CPU_OPERATOR(op)                                                             \
    template <class X, class Y, std::enable_if_t<any_expression<X, Y>, int> = 0>          \
    __host__ __device__ auto operator op(const X& x, const Y& y) {                        \
        return Composed(                                                                  \
            [x, y](const auto&... a) { return evaluate(x, a...) op evaluate(y, a...); }); \
    }
CUDA_CPU_OPERATOR(+)
CUDA_CPU_OPERATOR(-)
CUDA_CPU_OPERATOR(*)
CUDA_CPU_OPERATOR(/)
CUDA_CPU_OPERATOR(%)
CUDA_CPU_OPERATOR(<)
CUDA_CPU_OPERATOR(>)
CUDA_CPU_OPERATOR(<=)
CUDA_CPU_OPERATOR(>=)
CUDA_CPU_OPERATOR(==)
CUDA_CPU_OPERATOR(!=)
CUDA_CPU_OPERATOR(&&)
CUDA_CPU_OPERATOR(||)
#undef CUDA_CPU_OPERATOR
template <class X, std::enable_if_t<std::is_base_of_v<Expression, X>, int> = 0>
__host__ __device__ auto operator-(const X& x) {
    return Composed([x](const auto&... a) { return -x(a...); });
}
}  // namespace detail
namespace placeholders {
inline constexpr detail::Argument<0> _1;
inline constexpr detail::Argument<1> _2;
inline constexpr detail::Argument<2> _3;
inline constexpr detail::Argument<3> _4;
}  // namespace placeholders
}  // namespace thrust
#include "../../macros_back.inc"
