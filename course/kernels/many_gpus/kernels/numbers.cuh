// The numbers that are added up: float, or bfloat16 whose sums are formed in float.
#pragma once
#include "peers.cuh"

// 16 bytes of numbers as floats, and back. `Sum<T>` adds the ranks' contributions up.
template <class T>
struct Sum;

template <>
struct Sum<float> {
    static constexpr int PER_WORD = 1;  // numbers in 4 bytes

    static __device__ void add(float (&sum)[1], unsigned bits) {
        sum[0] += __uint_as_float(bits);
    }
    static __device__ unsigned bits(const float (&sum)[1]) {
        return __float_as_uint(sum[0]);
    }
};

template <>
struct Sum<__nv_bfloat16> {
    static constexpr int PER_WORD = 2;

    static __device__ void add(float (&sum)[2], unsigned bits) {
        sum[0] += __uint_as_float(bits << 16);  // a bfloat16 is the upper half of a float
        sum[1] += __uint_as_float(bits & 0xffff0000u);
    }
    static __device__ unsigned bits(const float (&sum)[2]) {
        __nv_bfloat162 both = __floats2bfloat162_rn(sum[0], sum[1]);
        return *reinterpret_cast<unsigned*>(&both);
    }
};

// So many 4-byte words of numbers, added up in float and rounded once.
template <class T, int words>
struct Accumulator {
    float sums[words][Sum<T>::PER_WORD] = {};

    __device__ void add(const unsigned (&bits)[words]) {
#pragma unroll
        for (int i = 0; i < words; ++i)
            Sum<T>::add(sums[i], bits[i]);
    }
    __device__ void add(uint2 v) {
        unsigned bits[2] = {v.x, v.y};
        add(bits);
    }
    __device__ void add(uint4 v) {
        unsigned bits[4] = {v.x, v.y, v.z, v.w};
        add(bits);
    }
    __device__ unsigned bits(int i) const {
        return Sum<T>::bits(sums[i]);
    }
    __device__ uint2 two() const {
        return make_uint2(bits(0), bits(1));
    }
    __device__ uint4 four() const {
        return make_uint4(bits(0), bits(1), bits(2), bits(3));
    }
};
