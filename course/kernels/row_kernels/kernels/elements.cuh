// What rows are made of, and how threads read and write several elements at once.
//
// ELEMENT, a macro, is float, __nv_bfloat16 or __half; arithmetic is in float.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "bulk_copy.cuh"

using Element = ELEMENT;

// What one access of so many bytes moves.
template <typename T, int bytes>
struct Access;

template <typename T>
struct Access<T, 16> {
    using type = uint4;
};

template <>
struct Access<float, 16> {
    using type = float4;
};

template <typename T>
struct Access<T, 8> {
    using type = uint2;
};

template <typename T>
struct Access<T, 4> {
    using type = unsigned;
};

template <typename T>
struct Access<T, 2> {
    using type = unsigned short;
};

__device__ inline void unpack(float* to, float4 four) {
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

// Two elements of two bytes are one word.
__device__ inline void unpack_word(float* to, unsigned word, __nv_bfloat16) {
    to[0] = __uint_as_float(word << 16);  // a bfloat16 is the upper half of a float
    to[1] = __uint_as_float(word & 0xffff0000u);
}

__device__ inline void unpack_word(float* to, unsigned word, __half) {
    float2 two = __half22float2(*reinterpret_cast<__half2*>(&word));
    to[0] = two.x;
    to[1] = two.y;
}

__device__ inline void unpack_word(float* to, unsigned word, float) {
    to[0] = __uint_as_float(word);
}

constexpr int of_word = 4 / sizeof(Element);  // elements

__device__ inline void unpack(float* to, uint4 bits) {
    const unsigned words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
        unpack_word(to + i * of_word, words[i], Element());
}

__device__ inline void unpack(float* to, uint2 bits) {
    unpack_word(to, bits.x, Element());
    unpack_word(to + of_word, bits.y, Element());
}

__device__ inline void unpack(float* to, unsigned bits) {
    unpack_word(to, bits, Element());
}

__device__ inline void unpack(float* to, unsigned short bits) {
    to[0] = float(*reinterpret_cast<Element*>(&bits));
}

// What is read once goes past L1, which then has room for what every row needs. L2 is to let go of
// it last: nobody reads it again, but an H200's memory moves some percent more bytes a second so
// (`variants` has the comparison). We suppose: what was written leaves L2 sooner, in better order.
__device__ inline uint4 load_once(const uint4* from) {
    uint4 bits;
    asm("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
        : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
        : "l"(from), "l"(evict_last()));
    return bits;
}

__device__ inline float4 load_once(const float4* from) {
    uint4 bits = load_once(reinterpret_cast<const uint4*>(from));
    return *reinterpret_cast<float4*>(&bits);
}

// Narrow accesses of a warp may end within a sector, whose other half a neighbour wants: L1 keeps
// it.
__device__ inline uint2 load_once(const uint2* from) {
    uint2 bits;
    asm("ld.global.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
        : "=r"(bits.x), "=r"(bits.y)
        : "l"(from), "l"(evict_last()));
    return bits;
}

__device__ inline unsigned load_once(const unsigned* from) {
    unsigned bits;
    asm("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(bits) : "l"(from), "l"(evict_last()));
    return bits;
}

__device__ inline unsigned short load_once(const unsigned short* from) {
    unsigned short bits;
    asm("ld.global.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(bits) : "l"(from), "l"(evict_last()));
    return bits;
}

__device__ inline unsigned packed_word(const float* from, __nv_bfloat16) {
    __nv_bfloat162 two = __floats2bfloat162_rn(from[0], from[1]);
    return *reinterpret_cast<unsigned*>(&two);
}

__device__ inline unsigned packed_word(const float* from, __half) {
    __half2 two = __floats2half2_rn(from[0], from[1]);
    return *reinterpret_cast<unsigned*>(&two);
}

__device__ inline unsigned packed_word(const float* from, float) {
    return __float_as_uint(from[0]);
}

__device__ inline void pack_up(float4& to, const float* from) {
    to = make_float4(from[0], from[1], from[2], from[3]);
}

__device__ inline void pack_up(uint4& to, const float* from) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        words[i] = packed_word(from + i * of_word, Element());
    to = make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ inline void pack_up(uint2& to, const float* from) {
    to = make_uint2(packed_word(from, Element()), packed_word(from + of_word, Element()));
}

__device__ inline void pack_up(unsigned& to, const float* from) {
    to = packed_word(from, Element());
}

__device__ inline void pack_up(unsigned short& to, const float* from) {
    Element element = Element(from[0]);
    to = *reinterpret_cast<unsigned short*>(&element);
}
