// Registers of inline PTX as C++ values. An instruction looks at a register's bits in its own type;
// which variable of the program holds them does not matter. Source: PTX ISA, "Types".
#pragma once
#include <cstring>
#include <type_traits>
#include "../thread.h"

namespace cuda_cpu {
namespace ptx {
typedef signed char s8;
typedef unsigned char u8, b8;
typedef short s16;
typedef unsigned short u16, b16;
typedef int s32;
typedef unsigned u32, b32;
typedef long long s64;
typedef unsigned long long u64, b64;
typedef float f32;
typedef double f64;
typedef bool pred;

// Small floats: their bits, and what they are worth. Two of them in one register: first in the
// lower half.
template <int EXPONENT, int FRACTION, class Bits>
struct Small {
    Bits bits;
};
typedef Small<5, 10, u16> f16;
typedef Small<8, 7, u16> bf16;
typedef Small<4, 3, u8> e4m3;
typedef Small<5, 2, u8> e5m2;
template <class T>
struct Two {
    T low, high;
};
typedef Two<f16> f16x2;
typedef Two<bf16> bf16x2;
typedef Two<e4m3> e4m3x2;
typedef Two<e5m2> e5m2x2;

template <class T>
constexpr bool is_small = false;
template <int E, int F, class B>
constexpr bool is_small<Small<E, F, B>> = true;
template <class T>
constexpr bool is_two = false;
template <class T>
constexpr bool is_two<Two<T>> = true;

template <class To, class From>
CUDA_CPU_UNCHECKED inline To same_bits(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}

// What a small float is worth. e4m3 has no infinity: only all bits set is a NaN.
template <int E, int F, class B>
CUDA_CPU_UNCHECKED inline float worth(Small<E, F, B> x) {
    if constexpr (E == 8)
        return same_bits<float>(u32(x.bits) << 16);
    const int bias = (1 << (E - 1)) - 1, top = (1 << E) - 1;
    int exponent = x.bits >> F & top, fraction = x.bits & ((1 << F) - 1);
    u32 sign = u32(x.bits >> (E + F) & 1) << 31;
    if (exponent == top && (E != 4 || fraction == (1 << F) - 1))
        return same_bits<float>(sign | 0x7f800000u | u32(fraction) << (23 - F));
    if (exponent)
        return same_bits<float>(sign | u32(exponent + 127 - bias) << 23 |
                                u32(fraction) << (23 - F));
    float tiny = float(fraction) * same_bits<float>(u32(127 + 1 - bias - F) << 23);
    return sign ? -tiny : tiny;
}

enum class Round { nearest, zero, down, up, away };

// A number of 2 bits more than are kept, rounded: `rest` of the `half` steps to the next.
CUDA_CPU_UNCHECKED inline bool round_up(u64 kept, u64 rest, u64 half, bool negative, Round how) {
    if (rest == 0 || how == Round::zero)
        return false;
    if (how == Round::down || how == Round::up)
        return negative == (how == Round::down);
    return rest > half || (rest == half && (how == Round::away || (kept & 1)));
}

// The nearest small float. limit: what is too large becomes the largest number, not infinity.
template <class T>
CUDA_CPU_UNCHECKED inline T to_small(double value, Round how = Round::nearest, bool limit = false) {
    const int F = std::is_same_v<T, f16>    ? 10
                  : std::is_same_v<T, bf16> ? 7
                  : std::is_same_v<T, e4m3> ? 3
                                            : 2;
    const int E = std::is_same_v<T, bf16> ? 8 : std::is_same_v<T, e4m3> ? 4 : 5;
    const int bias = (1 << (E - 1)) - 1, top = (1 << E) - 1;
    typedef decltype(T::bits) Bits;
    const bool finite = E == 4;  // no infinity
    const u32 largest = finite ? u32(top) << F | ((1u << F) - 2) : (u32(top) << F) - 1;
    const u32 infinite = finite ? u32(top) << F | ((1u << F) - 1) : u32(top) << F;
    u64 bits = same_bits<u64>(value);
    bool negative = bits >> 63;
    auto made = [&](u32 x) { return T{Bits(x | u32(negative) << (E + F))}; };
    if (value != value)
        return E < 8 && sizeof(Bits) == 2 ? T{Bits(0x7fff)} : T{Bits((1u << (E + F)) - 1)};
    int exponent = int(bits >> 52 & 2047) - 1023 + bias;
    u64 fraction = (bits & ((u64(1) << 52) - 1)) | (bits << 1 ? u64(1) << 52 : 0);
    int drop = 52 - F + (exponent < 1 ? 1 - exponent : 0);
    if (value - value != 0)
        return made(limit ? largest : infinite);
    if (drop > 62)
        return made(round_up(0, bits << 1 ? 1 : 0, 2, negative, how));
    u64 kept = fraction >> drop, rest = fraction & ((u64(1) << drop) - 1);
    kept += round_up(kept, rest, u64(1) << (drop - 1), negative, how);
    u64 result = exponent < 1 ? kept : kept + (u64(exponent - 1) << F);
    if (result <= largest)
        return made(u32(result));
    bool to_largest = limit || how == Round::zero || (how == Round::down && !negative) ||
                      (how == Round::up && negative);
    return made(to_largest ? largest : infinite);
}

// ---- a register, looked at as T; widths that differ are cut or filled as `cvt` of integers would
template <class T, class X>
CUDA_CPU_UNCHECKED inline T as(const X& x) {
    if constexpr (std::is_pointer_v<X>)
        return as<T>(reinterpret_cast<u64>(x));
    else if constexpr (std::is_same_v<T, X>)
        return x;
    else if constexpr (std::is_same_v<T, bool>)
        return x != 0;
    else if constexpr (sizeof(T) == sizeof(X))
        return same_bits<T>(x);
    else if constexpr (std::is_arithmetic_v<T> && std::is_integral_v<T> &&
                       (std::is_integral_v<X> || std::is_enum_v<X>))
        return T(x);
    else if constexpr (sizeof(T) < sizeof(X) && !std::is_class_v<X>)
        return same_bits<T>(as<std::conditional_t<sizeof(T) == 1, u8,
                                                  std::conditional_t<sizeof(T) == 2, u16, u32>>>(
            same_bits<std::conditional_t<sizeof(X) == 8, u64, u32>>(x)));
    else
        static_assert(sizeof(T) == sizeof(X), "this register has another size");
}
template <class R, class T>
CUDA_CPU_UNCHECKED inline void assign(R& to, T value) {
    if constexpr (std::is_pointer_v<R>)
        to = reinterpret_cast<R>(as<u64>(value));
    else if constexpr (std::is_same_v<R, bool>)
        to = bool(as<u32>(value));
    else if constexpr (std::is_same_v<T, bool>)
        to = R(value);
    else if constexpr (sizeof(R) == sizeof(T))
        to = same_bits<R>(value);
    else if constexpr (std::is_integral_v<R> && std::is_integral_v<T>)
        to = R(value);
    else if constexpr (sizeof(R) == 4 && sizeof(T) == 1)
        to = same_bits<R>(u32(same_bits<u8>(value)));
    else if constexpr (sizeof(R) == 2 && sizeof(T) == 1)
        to = same_bits<R>(u16(same_bits<u8>(value)));
    else if constexpr (sizeof(R) == 4 && sizeof(T) == 2)
        to = same_bits<R>(u32(same_bits<u16>(value)));
    else
        static_assert(sizeof(R) == sizeof(T), "this register has another size");
}

// An operand of asm by its constraint's letter: as nvcc does, its size is held against it.
template <char C, class X>
CUDA_CPU_UNCHECKED constexpr auto operand(const X& x) {
    if constexpr (C == 'n') {
        return (long long)x;
    } else {
        static_assert(sizeof(X) == (C == 'h'               ? 2
                                    : C == 'r' || C == 'f' ? 4
                                                           : 8),
                      "an asm operand's size does not match its constraint: \"h\" takes 2 bytes, "
                      "\"r\" and \"f\" 4, \"l\" and \"d\" 8");
        static_assert((C == 'f' || C == 'd') == std::is_floating_point_v<X>,
                      "an asm operand's type does not match its constraint: \"f\" and \"d\" take "
                      "floating point, the others integers");
        if constexpr (std::is_pointer_v<X>)
            return reinterpret_cast<u64>(x);
        else
            return X(x);
    }
}
}  // namespace ptx
}  // namespace cuda_cpu
