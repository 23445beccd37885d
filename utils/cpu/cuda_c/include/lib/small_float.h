// What cuda_fp16.h and cuda_bf16.h share: exact conversions between float, double and the 16-bit
// formats.
//
// A 16-bit number is computed with in float, which has more than twice its digits and two: +, -, *,
// / and sqrt rounded to float and then to 16 bits give the correctly rounded result. A fused
// multiply-add needs more; it goes through rounding to odd, which keeps what the last rounding has
// to know.
#pragma once
#include <cstring>
#include <limits>
#include <type_traits>
#include "macros_aside.inc"

namespace cuda_cpu {
enum Rounding { nearest_even, toward_zero, upward, downward };

inline unsigned bits_of(float f) {
    unsigned u;
    memcpy(&u, &f, 4);
    return u;
}
inline float float_of(unsigned u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

// x rounded to `digits` significant bits, but not finer than 2^`least`, in any direction.
inline double round_to(double x, int digits, int least, Rounding r) {
    if (x == 0 || !std::isfinite(x))
        return x;
    int quantum = std::ilogb(x) - digits + 1;
    if (quantum < least)
        quantum = least;
    double scaled = std::ldexp(x, -quantum);
    double whole = r == nearest_even  ? std::nearbyint(scaled)
                   : r == toward_zero ? std::trunc(scaled)
                   : r == upward      ? std::ceil(scaled)
                                      : std::floor(scaled);
    return std::copysign(std::ldexp(whole, quantum), x);
}

// x as a float, rounded to odd: cut off, and the last bit set where anything was lost.
inline float odd_float(double x) {
    unsigned long long u;
    memcpy(&u, &x, 8);
    const unsigned long long lost = (1ull << 29) - 1;
    if (!(u & lost) || !std::isfinite(x) || std::fabs(x) < 0x1p-120 || std::fabs(x) > 0x1p127)
        return float(x);
    unsigned long long cut = u & ~lost;
    double d;
    memcpy(&d, &cut, 8);
    return float_of(bits_of(float(d)) | 1);
}

// a * b + c as a float, rounded to odd. a, b and c come from 16-bit numbers, so that a * b is exact
// in double.
inline float odd_fma(float a, float b, float c) {
    double product = double(a) * b, sum = product + c;
    double other = sum - product, lost = (product - (sum - other)) + (double(c) - other);
    if (lost != 0 && std::isfinite(sum)) {
        unsigned long long u;
        memcpy(&u, &sum, 8);
        if (!(u & 1))
            sum = std::nextafter(sum, lost > 0 ? INFINITY : -INFINITY);
    }
    return odd_float(sum);
}

// An integer as a double that rounds to 16 bits as the integer would.
template <class I>
inline double odd_double(I value) {
    if constexpr (sizeof(I) == 8)
        if (value > I(1) << 53 || (std::is_signed_v<I> && value < -(I(1) << 52) * 2))
            return double((value & ~I(0x7ff)) | (value & 0x7ff ? I(0x800) : I(0)));
    return double(value);
}

// A float as an integer, rounded; out of range gives the nearest in range, NaN gives 0, as on the
// GPU.
template <class I>
inline I to_integer(float x, Rounding r) {
    if (x != x)
        return 0;
    double whole = r == nearest_even  ? std::nearbyint(double(x))
                   : r == toward_zero ? std::trunc(double(x))
                   : r == upward      ? std::ceil(double(x))
                                      : std::floor(double(x));
    if (whole >= double(std::numeric_limits<I>::max()))
        return std::numeric_limits<I>::max();
    if (whole <= double(std::numeric_limits<I>::min()))
        return std::numeric_limits<I>::min();
    return I(whole);
}

// The bits of a half.
inline unsigned short half_bits(float f) {
    unsigned x = bits_of(f), sign = x >> 16 & 0x8000;
    x &= 0x7fffffff;
    if (x >= 0x47800000)
        return sign | (x > 0x7f800000 ? 0x7fff : 0x7c00);  // NaN; 2^16 and more
    if (x < 0x38800000)
        return sign | (bits_of(float_of(x) + 0.5f) - 0x3f000000);  // the sum rounds to 2^-24
    x += 0xfff + (x >> 13 & 1);
    return sign | ((x - 0x38000000) >> 13);
}
inline unsigned short half_bits(double x, Rounding r = nearest_even) {
    if (r == nearest_even || x != x)
        return half_bits(odd_float(x));
    double y = round_to(x, 11, -24, r);
    if (std::fabs(y) > 65504 && std::isfinite(x))  // beyond the largest half: it, or infinity
        y = r == toward_zero || (r == upward) != (x > 0) ? std::copysign(65504.0, x)
                                                         : std::copysign(INFINITY, x);
    return half_bits(float(y));
}
inline float half_value(unsigned short h) {
    unsigned sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest < 0x400)
        return float_of(bits_of(float(rest) * 0x1p-24f) | sign);
    return float_of(sign | ((rest << 13) + (rest >= 0x7c00 ? 224u << 23 : 112u << 23)));
}

// The bits of a bfloat16: the upper half of a float.
inline unsigned short bfloat16_bits(float f) {
    unsigned x = bits_of(f);
    if ((x & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (x + 0x7fff + (x >> 16 & 1)) >> 16;
}
inline unsigned short bfloat16_bits(double x, Rounding r = nearest_even) {
    if (x != x)
        return 0x7fff;
    double y = round_to(x, 8, -133, r);
    const double largest = 0x1.fep127;
    if (std::fabs(y) > largest && std::isfinite(x))
        y = r == nearest_even || (r != toward_zero && (r == upward) == (x > 0))
                ? std::copysign(INFINITY, x)
                : std::copysign(largest, x);
    return bits_of(float(y)) >> 16;
}
inline float bfloat16_value(unsigned short h) {
    return float_of(unsigned(h) << 16);
}

inline float saturate(float x) {
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}  // NaN gives 0
}  // namespace cuda_cpu
#include "macros_back.inc"
