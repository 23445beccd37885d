// Arithmetic instructions of inline PTX. Each takes and gives values of the instruction's own type.
// Source: PTX ISA, "Instruction Set". Integers wrap; shifts by more than the width are clamped.
#pragma once
#include "values.h"

namespace cuda_cpu {
namespace ptx {
template <class T>
using Unsigned = std::conditional_t<
    sizeof(T) == 8, u64,
    std::conditional_t<sizeof(T) == 4, u32, std::conditional_t<sizeof(T) == 2, u16, u8>>>;
template <class T>
constexpr int width = sizeof(T) * 8;

CUDA_CPU_UNCHECKED inline float flushed(float x) {
    return std::fabs(x) < 1.17549435e-38f ? std::copysign(0.0f, x) : x;
}
template <class T>
CUDA_CPU_UNCHECKED inline T saturated(T x) {
    return !(x > 0) ? T(0) : x > 1 ? T(1) : x;
}

// f applied to each number of a register
template <class T, class F, class... X>
CUDA_CPU_UNCHECKED inline T each(F f, X... x) {
    if constexpr (is_two<T>)
        return {each<decltype(T::low)>(f, x.low...), each<decltype(T::low)>(f, x.high...)};
    else if constexpr (is_small<T>)
        return to_small<T>(f(double(worth(x))...));
    else
        return f(x...);
}

#define CUDA_CPU_PTX_TWO(name, integer, real)                          \
    template <class T>                                                 \
    CUDA_CPU_UNCHECKED inline T name(T a, T b) {                       \
        if constexpr (std::is_integral_v<T>) {                         \
            typedef Unsigned<T> U;                                     \
            (void)sizeof(U);                                           \
            return integer;                                            \
        } else {                                                       \
            return each<T>([](auto a, auto b) { return real; }, a, b); \
        }                                                              \
    }
CUDA_CPU_PTX_TWO(add, T(U(a) + U(b)), a + b)
CUDA_CPU_PTX_TWO(sub, T(U(a) - U(b)), a - b)
CUDA_CPU_PTX_TWO(mul_lo, T(u64(U(a)) * U(b)), a* b)
// A division by zero gives all bits set, the remainder the dividend: what GPUs do.
CUDA_CPU_PTX_TWO(div, b == 0 ? T(-1) : b == T(-1) && T(-1) < T(0) ? T(0 - U(a)) : T(a / b), a / b)
CUDA_CPU_PTX_TWO(rem, b == 0 ? a : b == T(-1) && T(-1) < T(0) ? T(0) : T(a % b), a)
CUDA_CPU_PTX_TWO(smaller, b < a ? b : a,
                 a != a                                 ? b
                 : b != b                               ? a
                 : b < a || (a == b && std::signbit(b)) ? b
                                                        : a)
CUDA_CPU_PTX_TWO(larger, a < b ? b : a,
                 a != a                                 ? b
                 : b != b                               ? a
                 : a < b || (a == b && std::signbit(a)) ? b
                                                        : a)
#undef CUDA_CPU_PTX_TWO

template <class T>
CUDA_CPU_UNCHECKED inline T mul_hi(T a, T b) {
    typedef std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128> Wide;
    return T(Wide(a) * Wide(b) >> width<T>);
}
template <class W, class T>
CUDA_CPU_UNCHECKED inline W mul_wide(T a, T b) {
    return W(a) * W(b);
}
template <class T>
CUDA_CPU_UNCHECKED inline T fma(T a, T b, T c) {
    if constexpr (std::is_same_v<T, f32> || std::is_same_v<T, f64>)
        return std::fma(a, b, c);
    else
        return each<T>([](double a, double b, double c) { return std::fma(a, b, c); }, a, b, c);
}
template <class T>
CUDA_CPU_UNCHECKED inline T neg(T a) {
    if constexpr (std::is_integral_v<T>)
        return T(0 - Unsigned<T>(a));
    else
        return each<T>([](auto x) { return -x; }, a);
}
template <class T>
CUDA_CPU_UNCHECKED inline T absolute(T a) {
    if constexpr (std::is_integral_v<T>)
        return a < 0 ? neg(a) : a;
    else
        return each<T>([](auto x) { return std::fabs(x); }, a);
}
template <class T>
CUDA_CPU_UNCHECKED inline T shl(T a, u32 n) {
    return n >= u32(width<T>) ? T(0) : T(Unsigned<T>(a) << n);
}
template <class T>
CUDA_CPU_UNCHECKED inline T shr(T a, u32 n) {
    if (n >= u32(width<T>))
        return a < 0 ? T(-1) : T(0);
    return T(a >> n);
}
CUDA_CPU_UNCHECKED inline u32 funnel(u32 low, u32 high, u32 n, bool left, bool clamp) {
    n = clamp ? (n > 32 ? 32 : n) : n & 31;
    u64 both = u64(high) << 32 | low;
    return left ? u32(both << n >> 32) : u32(both >> n);
}
CUDA_CPU_UNCHECKED inline u32 lop3(u32 a, u32 b, u32 c, u32 table) {
    u32 r = 0;
    for (int i = 0; i < 8; ++i)
        if (table >> i & 1)
            r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return r;
}
CUDA_CPU_UNCHECKED inline u32 permute(u32 a, u32 b, u32 selector) {
    u64 both = u64(b) << 32 | a;
    u32 r = 0;
    for (int i = 0; i < 4; ++i) {
        u32 pick = selector >> (i * 4) & 15;
        u32 byte = u32(both >> (pick & 7) * 8) & 255;
        r |= (pick & 8 ? (byte & 128 ? 255u : 0u) : byte) << (i * 8);
    }
    return r;
}
CUDA_CPU_UNCHECKED inline u32 count_bits(u64 a) {
    return u32(__builtin_popcountll(a));
}
template <class T>
CUDA_CPU_UNCHECKED inline u32 leading_zeros(T a) {
    return a ? u32(__builtin_clzll(u64(Unsigned<T>(a)))) - (64 - width<T>) : u32(width<T>);
}
template <class T>
CUDA_CPU_UNCHECKED inline T reversed(T a) {
    Unsigned<T> r = 0;
    for (int i = 0; i < width<T>; ++i)
        r |= Unsigned<T>(Unsigned<T>(a) >> i & 1) << (width<T> - 1 - i);
    return T(r);
}
template <class T>
CUDA_CPU_UNCHECKED inline u32 find_bit(T a, bool amount) {
    Unsigned<T> u = a < 0 ? ~Unsigned<T>(a) : Unsigned<T>(a);
    if (!u)
        return ~0u;
    u32 zeros = leading_zeros(u);
    return amount ? zeros : u32(width<T>) - 1 - zeros;
}
template <class T>
CUDA_CPU_UNCHECKED inline T extract(T a, u32 start, u32 length) {
    start &= 255;
    length &= 255;
    if (length == 0)
        return 0;
    const u32 top = width<T> - 1;
    u32 last = start + length - 1 > top ? top : start + length - 1;
    Unsigned<T> sign = std::is_signed_v<T> ? Unsigned<T>(Unsigned<T>(a) >> last & 1) : 0;
    Unsigned<T> r = sign ? ~Unsigned<T>(0) : 0;
    for (u32 i = 0; i < length && i <= top; ++i) {
        Unsigned<T> bit = start + i <= top ? Unsigned<T>(Unsigned<T>(a) >> (start + i) & 1) : sign;
        r = Unsigned<T>((r & ~(Unsigned<T>(1) << i)) | bit << i);
    }
    return T(r);
}
template <class T>
CUDA_CPU_UNCHECKED inline T insert(T a, T b, u32 start, u32 length) {
    start &= 255;
    length &= 255;
    for (u32 i = 0; i < length && start + i < u32(width<T>); ++i) {
        T bit = T(1) << (start + i);
        b = T((b & ~bit) | (a >> i & 1 ? bit : T(0)));
    }
    return b;
}

// ---- comparisons: `u` forms are true for NaN
enum class Compare { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
template <class T>
CUDA_CPU_UNCHECKED inline bool holds(Compare how, T a, T b) {
    if constexpr (is_small<T>) {
        return holds(how, worth(a), worth(b));
    } else {
        bool unordered = a != a || b != b;
        switch (how) {
            case Compare::eq:
                return a == b;
            case Compare::ne:
                return a != b && !unordered;
            case Compare::lt:
                return a < b;
            case Compare::le:
                return a <= b;
            case Compare::gt:
                return a > b;
            case Compare::ge:
                return a >= b;
            case Compare::num:
                return !unordered;
            case Compare::nan:
                return unordered;
            case Compare::equ:
                return unordered || a == b;
            case Compare::neu:
                return unordered || a != b;
            case Compare::ltu:
                return unordered || a < b;
            case Compare::leu:
                return unordered || a <= b;
            case Compare::gtu:
                return unordered || a > b;
            default:
                return unordered || a >= b;
        }
    }
}

// ---- cvt
template <class T>
CUDA_CPU_UNCHECKED inline double rounded(T x, Round how) {
    double v = double(x);
    return how == Round::zero   ? std::trunc(v)
           : how == Round::down ? std::floor(v)
           : how == Round::up   ? std::ceil(v)
                                : std::nearbyint(v);
}
// To an integer: clamped, and 0 for NaN (64 bits: the number with the top bit alone).
template <class To>
CUDA_CPU_UNCHECKED inline To to_integer(double x, Round how) {
    if (x != x)
        return sizeof(To) == 8 ? To(u64(1) << 63) : To(0);
    x = rounded(x, how);
    const bool negative = std::is_signed_v<To>;
    const double top = std::ldexp(1.0, width<To> - negative);
    if (x >= top)
        return negative ? To(Unsigned<To>(-1) >> 1) : To(-1);
    if (x < (negative ? -top : 0.0))
        return negative ? To(Unsigned<To>(1) << (width<To> - 1)) : To(0);
    return To(x);
}
template <class To, class From>
CUDA_CPU_UNCHECKED inline To clamped(From x) {
    typedef __int128 Wide;
    const Wide most = std::is_signed_v<To> ? Wide(Unsigned<To>(-1) >> 1) : Wide(Unsigned<To>(-1));
    const Wide least = std::is_signed_v<To> ? -most - 1 : Wide(0);
    Wide w = Wide(x);
    return To(w > most ? most : w < least ? least : w);
}
// A float with fewer bits of its fraction (TF32), halves away from zero, or to even.
CUDA_CPU_UNCHECKED inline u32 to_tf32(float x, Round how) {
    u32 bits = same_bits<u32>(x);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits;
    u32 kept = bits >> 13, rest = bits & 0x1fff;
    kept += round_up(kept, rest, 0x1000, bits >> 31, how);
    return kept << 13;
}
CUDA_CPU_UNCHECKED inline float to_float(double x, Round how) {
    float r = float(x);
    if (how == Round::nearest || double(r) == x || x != x)
        return r;
    bool too_high = double(r) > x;
    if (how == Round::zero ? too_high == (x > 0) : how == Round::down ? too_high : !too_high)
        r = std::nextafter(r, too_high ? -INFINITY : INFINITY);
    return r;
}
template <class To, class From>
CUDA_CPU_UNCHECKED inline To convert(From x, Round how, bool saturate) {
    constexpr bool from_integer = std::is_integral_v<From>;
    if constexpr (is_two<From>) {
        typedef decltype(To::low) Part;
        return To{convert<Part>(x.low, how, saturate), convert<Part>(x.high, how, saturate)};
    } else if constexpr (is_small<From>) {
        return convert<To>(worth(x), how, saturate);
    } else if constexpr (std::is_integral_v<To>) {
        if constexpr (!from_integer)
            return to_integer<To>(double(x), how);
        else
            return saturate ? clamped<To>(x) : To(x);
    } else if constexpr (is_small<To>) {
        double v = double(x);
        if (saturate && sizeof(To) == 2)
            v = saturated(v);
        return to_small<To>(v, how, saturate && sizeof(To) == 1);
    } else if constexpr (std::is_same_v<To, f32>) {
        float r;
        if constexpr (from_integer)
            r = how == Round::nearest ? float(x) : to_float(double(x), how);
        else
            r = to_float(double(x), how);
        return saturate ? saturated(r) : r;
    } else {
        return saturate ? saturated(double(x)) : double(x);
    }
}
template <class To>
CUDA_CPU_UNCHECKED inline To convert_two(float high, float low, Round how, bool saturate) {
    typedef decltype(To::low) Part;
    return To{convert<Part>(low, how, saturate), convert<Part>(high, how, saturate)};
}
}  // namespace ptx
}  // namespace cuda_cpu
