// Shifts and conversions as PTX has them, where C++ and the host's processor leave or choose
// another answer. The rewrite puts these into device code: see arithmetic.py.
#pragma once
#include <limits>
#include <type_traits>

namespace cuda_cpu {
// ---- shifts: PTX's shl and shr take an unsigned 32-bit amount and clamp it to the width
template <class T>
constexpr unsigned shift_amount(const T& n) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
        return unsigned(n);
    else
        return unsigned(int(n));
}
template <class T>
constexpr T shifted_left(T a, unsigned n) {
    using Bits = std::make_unsigned_t<T>;
    return n < 8 * sizeof(T) ? T(Bits(a) << n) : T(0);
}
template <class T>
constexpr T shifted_right(T a, unsigned n) {
    constexpr unsigned most = 8 * sizeof(T) - 1;
    if (n <= most)
        return a >> n;
    return std::is_signed_v<T> ? T(a >> most) : T(0);
}

// `a << by << n`: precedence and order are those of `a << n`.
struct By {};
constexpr By by{};
template <class T>
struct Shift {  // of an integer, promoted
    T a;
};
template <class T>
struct Pass {  // of anything else: its own operator
    T& a;
};
template <class U>
struct Amount {  // for `a <<= by <<= n`
    const U& n;
};

template <class T>
inline constexpr bool is_integer =
    std::is_integral_v<std::remove_cv_t<T>> ||
    (std::is_enum_v<std::remove_cv_t<T>> && std::is_convertible_v<T, long long>);

template <class T, std::enable_if_t<is_integer<T>, int> = 0>
constexpr auto operator<<(const T& a, By) {
    return Shift<decltype(+a)>{+a};
}
template <class T, std::enable_if_t<is_integer<T>, int> = 0>
constexpr auto operator>>(const T& a, By) {
    return Shift<decltype(+a)>{+a};
}
template <class T, std::enable_if_t<!is_integer<std::remove_reference_t<T>>, int> = 0>
constexpr auto operator<<(T&& a, By) {
    return Pass<std::remove_reference_t<T>>{a};
}
template <class T, std::enable_if_t<!is_integer<std::remove_reference_t<T>>, int> = 0>
constexpr auto operator>>(T&& a, By) {
    return Pass<std::remove_reference_t<T>>{a};
}
template <class T, class U>
constexpr T operator<<(Shift<T> s, const U& n) {
    return shifted_left(s.a, shift_amount(n));
}
template <class T, class U>
constexpr T operator>>(Shift<T> s, const U& n) {
    return shifted_right(s.a, shift_amount(n));
}
template <class T, class U>
constexpr decltype(auto) operator<<(Pass<T> s, U&& n) {
    return s.a << static_cast<U&&>(n);
}
template <class T, class U>
constexpr decltype(auto) operator>>(Pass<T> s, U&& n) {
    return s.a >> static_cast<U&&>(n);
}

template <class U>
constexpr Amount<U> operator<<=(By, const U& n) {
    return {n};
}
template <class U>
constexpr Amount<U> operator>>=(By, const U& n) {
    return {n};
}
template <class T, class U>
constexpr T& operator<<=(T& a, Amount<U> amount) {
    if constexpr (is_integer<T>)
        a = T(a << by << amount.n);
    else
        a <<= amount.n;
    return a;
}
template <class T, class U>
constexpr T& operator>>=(T& a, Amount<U> amount) {
    if constexpr (is_integer<T>)
        a = T(a >> by >> amount.n);
    else
        a >>= amount.n;
    return a;
}

// ---- from floating point to integers: towards zero, to the nearest value that there is
// (PTX ISA, cvt: what NaN becomes depends on both types)
template <class To, class From>
constexpr To saturated(From x) {
    using Limits = std::numeric_limits<To>;
    constexpr bool wide = sizeof(To) == 8 || sizeof(From) == 8;
    constexpr To top_bit = To(std::make_unsigned_t<To>(1) << (8 * sizeof(To) - 1));
    if (x != x)
        return wide ? top_bit : To(0);
    constexpr From end = From(top_bit < 0 ? -From(top_bit) : From(top_bit) * 2);  // max + 1
    if (x >= end)
        return Limits::max();
    if (x <= (std::is_signed_v<To> ? -end : From(0)))
        return Limits::min();
    return To(x);
}
// What `(To)x` is put through first. Narrow integers are the low bits of 32-bit ones.
template <class To>
struct Cast {
    To value;
    template <class From>
    constexpr Cast(const From& x) : value(of(x)) {}
    constexpr operator To() const {
        return value;
    }
    template <class From>
    static constexpr To of(const From& x) {
        using Plain = std::remove_cv_t<From>;
        if constexpr (!std::is_floating_point_v<Plain>)
            return (To)x;
        else if constexpr (sizeof(To) >= 4)
            return saturated<To>(Plain(x));
        else if constexpr (std::is_signed_v<To>)
            return To(saturated<int>(Plain(x)));
        else
            return To(saturated<unsigned>(Plain(x)));
    }
};

// What is stored in a To without a cast: a float as above, anything else as it is.
template <class To>
struct Stored {
    using Plain = std::remove_cv_t<std::remove_reference_t<To>>;
    template <class From>
    __attribute__((always_inline)) static constexpr decltype(auto) of(const From& x) {
        if constexpr (std::is_floating_point_v<std::remove_cv_t<From>> &&
                      std::is_integral_v<Plain> && !std::is_same_v<Plain, bool>)
            return Cast<Plain>::of(x);
        else
            return (x);
    }
};

// `n += by += x` of an integer n: the sum is converted
#define CUDA_CPU_ASSIGNING(name, sign)                                                     \
    template <class U>                                                                     \
    struct name {                                                                          \
        const U& n;                                                                        \
    };                                                                                     \
    template <class U>                                                                     \
    constexpr name<U> operator sign## = (By, const U& n) {                                 \
        return {n};                                                                        \
    }                                                                                      \
    template <class T, class U>                                                            \
    __attribute__((always_inline)) constexpr T& operator sign## = (T & a, name<U> other) { \
        if constexpr (std::is_floating_point_v<U>)                                         \
            a = Stored<T>::of(a sign other.n);                                             \
        else                                                                               \
            a sign## = other.n;                                                            \
        return a;                                                                          \
    }
CUDA_CPU_ASSIGNING(AddedBy, +)
CUDA_CPU_ASSIGNING(LessBy, -)
CUDA_CPU_ASSIGNING(TimesBy, *)
CUDA_CPU_ASSIGNING(DividedBy, /)
#undef CUDA_CPU_ASSIGNING
}  // namespace cuda_cpu
