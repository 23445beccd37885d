// The built-in vector types (int3, float4 ...), dim3 and their make_ functions.
#pragma once
#define CUDA_CPU_VECTORS(name, type, size)                                    \
    struct name##1 {                                                          \
        type x;                                                               \
    };                                                                        \
    struct alignas(2 * size) name##2 {                                        \
        type x, y;                                                            \
    };                                                                        \
    struct name##3 {                                                          \
        type x, y, z;                                                         \
    };                                                                        \
    struct alignas(4 * size > 16 ? 16 : 4 * size) name##4 {                   \
        type x, y, z, w;                                                      \
    };                                                                        \
    inline constexpr name##1 make_##name##1(type x) {                         \
        return {x};                                                           \
    }                                                                         \
    inline constexpr name##2 make_##name##2(type x, type y) {                 \
        return {x, y};                                                        \
    }                                                                         \
    inline constexpr name##3 make_##name##3(type x, type y, type z) {         \
        return {x, y, z};                                                     \
    }                                                                         \
    inline constexpr name##4 make_##name##4(type x, type y, type z, type w) { \
        return {x, y, z, w};                                                  \
    }
CUDA_CPU_VECTORS(char, signed char, 1)
CUDA_CPU_VECTORS(uchar, unsigned char, 1)
CUDA_CPU_VECTORS(short, short, 2)
CUDA_CPU_VECTORS(ushort, unsigned short, 2)
CUDA_CPU_VECTORS(int, int, 4)
CUDA_CPU_VECTORS(uint, unsigned int, 4)
CUDA_CPU_VECTORS(long, long, 8)
CUDA_CPU_VECTORS(ulong, unsigned long, 8)
CUDA_CPU_VECTORS(longlong, long long, 8)
CUDA_CPU_VECTORS(ulonglong, unsigned long long, 8)
CUDA_CPU_VECTORS(float, float, 4)
CUDA_CPU_VECTORS(double, double, 8)
#undef CUDA_CPU_VECTORS

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
        : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const {
        return uint3{x, y, z};
    }
};
