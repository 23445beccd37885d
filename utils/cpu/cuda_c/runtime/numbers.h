// Numbers of the tensor cores' types in memory.
#pragma once
#include "../include/detail/ptx/arithmetic.h"
#include "../include/detail/ptx/declarations.h"

namespace cuda_cpu {
namespace ptx {
inline int bytes_of(Number n) {
    switch (n) {
        case Number::f64:
            return 8;
        case Number::f32:
        case Number::tf32:
        case Number::s32:
            return 4;
        case Number::f16:
        case Number::bf16:
            return 2;
        default:
            return 1;
    }
}
template <class T>
inline T read_as(const void* p, int i) {
    T value;
    memcpy(&value, static_cast<const char*>(p) + i * int(sizeof(T)), sizeof(T));
    return value;
}
// The i-th number. Of a float that is taken for TF32 the lowest 13 bits are ignored.
template <class Sum>
inline Sum number_at(const void* p, int i, Number kind) {
    switch (kind) {
        case Number::f16:
            return Sum(worth(read_as<f16>(p, i)));
        case Number::bf16:
            return Sum(worth(read_as<bf16>(p, i)));
        case Number::tf32:
            return Sum(same_bits<float>(read_as<u32>(p, i) & 0xffffe000u));
        case Number::f32:
            return Sum(read_as<float>(p, i));
        case Number::f64:
            return Sum(read_as<double>(p, i));
        case Number::s8:
            return Sum(read_as<s8>(p, i));
        case Number::u8:
            return Sum(read_as<u8>(p, i));
        case Number::e4m3:
            return Sum(worth(read_as<e4m3>(p, i)));
        case Number::e5m2:
            return Sum(worth(read_as<e5m2>(p, i)));
        default:
            return Sum(read_as<s32>(p, i));
    }
}
template <class Sum>
inline void put_number(void* p, int i, Number kind, Sum value) {
    auto put = [&](auto v) { memcpy(static_cast<char*>(p) + i * int(sizeof v), &v, sizeof v); };
    if (kind == Number::f16)
        put(to_small<f16>(double(value)));
    else if (kind == Number::s32)
        put(s32(value));
    else if (kind == Number::f64)
        put(double(value));
    else
        put(float(value));
}
template <class Sum>
inline Sum added(Sum a, Sum b, bool) {
    return a + b;
}
template <>
inline int added<int>(int a, int b, bool saturate) {
    return saturate ? clamped<s32>((long long)a + b) : int(unsigned(a) + unsigned(b));
}
}  // namespace ptx
}  // namespace cuda_cpu
