// What the blocks of a scan tell one another: a value and a tag in one 64-bit word, which is read
// and written as a whole. Whoever sees the tag has the value too, so no fence is needed.
#pragma once
#include "warps.cuh"

using Word = unsigned long long;

template <typename T>
__device__ inline Word pack(unsigned tag, T value) {
    static_assert(sizeof(T) == 4);
    unsigned bits;
    memcpy(&bits, &value, 4);
    return Word(tag) << 32 | bits;
}

template <typename T>
__device__ inline T value_of(Word word) {
    const unsigned bits = static_cast<unsigned>(word);
    T value;
    memcpy(&value, &bits, 4);
    return value;
}

__device__ inline unsigned tag_of(Word word) {
    return static_cast<unsigned>(word >> 32);
}

// `volatile`: from memory each time, past the L1 cache, which other SMs do not see.
__device__ inline Word read_word(const Word* word) {
    return *static_cast<const volatile Word*>(word);
}

__device__ inline void write_word(Word* word, Word content) {
    *static_cast<volatile Word*>(word) = content;
}

// Let others work for a moment before one asks again.
__device__ inline void pause() {
    __nanosleep(20);
}

// Long sums of float are added up in double: it costs nothing here, and 2^28 floats need it.
template <typename T>
struct Long {
    using type = T;
};
template <>
struct Long<float> {
    using type = double;
};

template <typename T>
struct alignas(16) Four {
    T x, y, z, w;
};
