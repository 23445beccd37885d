// Textures, surfaces and the arrays that they read and write. The reading itself is in
// runtime/textures.cpp; here are the types of the elements. Source: CUDA C++ Programming Guide,
// "Texture and Surface Memory" and "Texture Fetching".
#pragma once
#include <type_traits>
#include "api.h"

enum cudaResourceType {
    cudaResourceTypeArray = 0,
    cudaResourceTypeMipmappedArray = 1,
    cudaResourceTypeLinear = 2,
    cudaResourceTypePitch2D = 3
};
enum cudaTextureAddressMode {
    cudaAddressModeWrap = 0,
    cudaAddressModeClamp = 1,
    cudaAddressModeMirror = 2,
    cudaAddressModeBorder = 3
};
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
enum cudaSurfaceBoundaryMode {
    cudaBoundaryModeZero = 0,
    cudaBoundaryModeClamp = 1,
    cudaBoundaryModeTrap = 2
};
struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        struct {
            cudaArray_t array;
        } array;
        struct {
            void* devPtr;
            cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void* devPtr;
            cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
        struct {
            int reserved[32];
        } reserved;
    } res;
    unsigned flags;
};
struct cudaTextureDesc {
    cudaTextureAddressMode addressMode[3];
    cudaTextureFilterMode filterMode;
    cudaTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization, seamlessCubemap;
};
struct cudaResourceViewDesc;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
#define cudaArrayDefault 0x00
#define cudaArrayLayered 0x01
#define cudaArraySurfaceLoadStore 0x02
#define cudaArrayCubemap 0x04
#define cudaArrayTextureGather 0x08

cudaError_t cudaMalloc3DArray(cudaArray_t*, const cudaChannelFormatDesc*, cudaExtent,
                              unsigned flags = 0, CUDA_CPU_HERE);
cudaError_t cudaMallocArray(cudaArray_t*, const cudaChannelFormatDesc*, size_t width,
                            size_t height = 0, unsigned flags = 0, CUDA_CPU_HERE);
cudaError_t cudaFreeArray(cudaArray_t, CUDA_CPU_HERE);
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc*, cudaExtent*, unsigned* flags, cudaArray_t);
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc*, cudaArray_const_t);
cudaError_t cudaMemcpyToArray(cudaArray_t, size_t x, size_t y, const void* from, size_t bytes,
                              cudaMemcpyKind, CUDA_CPU_HERE);
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind, CUDA_CPU_HERE);
cudaError_t cudaMemcpy2DToArray(cudaArray_t, size_t x, size_t y, const void* from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind, CUDA_CPU_HERE);
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t, size_t x, size_t y, const void* from,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind,
                                     cudaStream_t = nullptr, CUDA_CPU_HERE);
cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t, size_t x, size_t y,
                                  size_t width, size_t height, cudaMemcpyKind, CUDA_CPU_HERE);
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t, size_t x,
                                       size_t y, size_t width, size_t height, cudaMemcpyKind,
                                       cudaStream_t = nullptr, CUDA_CPU_HERE);
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t x, size_t y, cudaArray_const_t from,
                                     size_t from_x, size_t from_y, size_t width, size_t height,
                                     cudaMemcpyKind = cudaMemcpyDeviceToDevice, CUDA_CPU_HERE);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t*, const cudaResourceDesc*,
                                    const cudaTextureDesc*, const cudaResourceViewDesc*);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t);
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc*, cudaTextureObject_t);
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc*, cudaTextureObject_t);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t*, const cudaResourceDesc*);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t);
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc*, cudaSurfaceObject_t);
inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}

namespace cuda_cpu {
// What a texture's element is made of: int4 is 4 times int.
template <class T>
struct Channels {
    typedef T type;
    static constexpr int count = std::is_arithmetic_v<T> ? 1 : 0;
};
#define CUDA_CPU_CHANNELS(name, T)      \
    template <>                         \
    struct Channels<name##1> {          \
        typedef T type;                 \
        static constexpr int count = 1; \
    };                                  \
    template <>                         \
    struct Channels<name##2> {          \
        typedef T type;                 \
        static constexpr int count = 2; \
    };                                  \
    template <>                         \
    struct Channels<name##4> {          \
        typedef T type;                 \
        static constexpr int count = 4; \
    };
CUDA_CPU_CHANNELS(char, signed char)
CUDA_CPU_CHANNELS(uchar, unsigned char)
CUDA_CPU_CHANNELS(short, short)
CUDA_CPU_CHANNELS(ushort, unsigned short)
CUDA_CPU_CHANNELS(int, int)
CUDA_CPU_CHANNELS(uint, unsigned)
CUDA_CPU_CHANNELS(float, float)
#undef CUDA_CPU_CHANNELS

// Four channels as they come out of a texture: numbers, or the bits of integers.
struct Texel {
    float number[4];
    unsigned bits[4];
};
struct Coordinates {
    float at[3];
    int dimensions;  // 1 to 3, without the layer
    int layer;  // -1: none
};
void read_texture(Texel* out, cudaTextureObject_t, const Coordinates&, bool wants_float, Site at);
void fetch_texture(Texel* out, cudaTextureObject_t, int i, bool wants_float, Site at);
// Where the element of a surface lies, or null outside. x counts bytes.
char* surface_element(cudaSurfaceObject_t, int x, int y, int z, int dimensions, bool layered,
                      unsigned bytes, cudaSurfaceBoundaryMode, Site at);

template <class T>
T from_texel(const Texel& texel) {
    typedef typename Channels<T>::type Channel;
    Channel all[4];
    for (int c = 0; c < 4; ++c) {
        if constexpr (std::is_same_v<Channel, float>)
            all[c] = texel.number[c];
        else
            all[c] = Channel(texel.bits[c]);
    }
    T value;
    __builtin_memcpy(&value, all, sizeof(T));
    return value;
}
template <class T>
T texture_value(cudaTextureObject_t texture, const Coordinates& where, Site at) {
    static_assert(Channels<T>::count, "a texture gives char, short, int, float or 1, 2, 4 of them");
    Texel texel;
    read_texture(&texel, texture, where, std::is_same_v<typename Channels<T>::type, float>, at);
    return from_texel<T>(texel);
}
template <class T>
T texture_element(cudaTextureObject_t texture, int i, Site at) {
    Texel texel;
    fetch_texture(&texel, texture, i, std::is_same_v<typename Channels<T>::type, float>, at);
    return from_texel<T>(texel);
}
template <class T>
void surface_read(T* value, cudaSurfaceObject_t s, int x, int y, int z, int dimensions,
                  bool layered, cudaSurfaceBoundaryMode mode, Site at) {
    char* p = surface_element(s, x, y, z, dimensions, layered, sizeof(T), mode, at);
    if (p)
        __builtin_memcpy(value, p, sizeof(T));
    else
        __builtin_memset(value, 0, sizeof(T));
}
template <class T>
void surface_write(const T& value, cudaSurfaceObject_t s, int x, int y, int z, int dimensions,
                   bool layered, cudaSurfaceBoundaryMode mode, Site at) {
    char* p = surface_element(s, x, y, z, dimensions, layered, sizeof(T), mode, at);
    if (p)
        __builtin_memcpy(p, &value, sizeof(T));
}
}  // namespace cuda_cpu

template <class T>
inline cudaChannelFormatDesc cudaCreateChannelDesc() {
    typedef typename ::cuda_cpu::Channels<T>::type Channel;
    int n = ::cuda_cpu::Channels<T>::count;
    int bits = int(sizeof(Channel)) * 8;
    cudaChannelFormatKind kind = std::is_floating_point_v<Channel> ? cudaChannelFormatKindFloat
                                 : std::is_signed_v<Channel>       ? cudaChannelFormatKindSigned
                                                                   : cudaChannelFormatKindUnsigned;
    return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0, kind};
}

// Each function as one that gives the value and one that stores it.
#define CUDA_CPU_TEXTURE(name, parameters, ...)                                                 \
    template <class T>                                                                          \
    inline T name(cudaTextureObject_t t, CUDA_CPU_ALL parameters, CUDA_CPU_HERE) {              \
        return ::cuda_cpu::texture_value<T>(t, {__VA_ARGS__}, at);                              \
    }                                                                                           \
    template <class T>                                                                          \
    inline void name(T* value, cudaTextureObject_t t, CUDA_CPU_ALL parameters, CUDA_CPU_HERE) { \
        *value = ::cuda_cpu::texture_value<T>(t, {__VA_ARGS__}, at);                            \
    }
#define CUDA_CPU_ALL(...) __VA_ARGS__
CUDA_CPU_TEXTURE(tex1D, (float x), {x, 0, 0}, 1, -1)
CUDA_CPU_TEXTURE(tex2D, (float x, float y), {x, y, 0}, 2, -1)
CUDA_CPU_TEXTURE(tex3D, (float x, float y, float z), {x, y, z}, 3, -1)
CUDA_CPU_TEXTURE(tex1DLayered, (float x, int layer), {x, 0, 0}, 1, layer)
CUDA_CPU_TEXTURE(tex2DLayered, (float x, float y, int layer), {x, y, 0}, 2, layer)
#undef CUDA_CPU_TEXTURE
template <class T>
inline T tex1Dfetch(cudaTextureObject_t t, int i, CUDA_CPU_HERE) {
    return ::cuda_cpu::texture_element<T>(t, i, at);
}
template <class T>
inline void tex1Dfetch(T* value, cudaTextureObject_t t, int i, CUDA_CPU_HERE) {
    *value = ::cuda_cpu::texture_element<T>(t, i, at);
}

#define CUDA_CPU_SURFACE(name, parameters, ...)                                                   \
    template <class T>                                                                            \
    inline T name##read(cudaSurfaceObject_t s, CUDA_CPU_ALL parameters,                           \
                        cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, CUDA_CPU_HERE) {     \
        T value;                                                                                  \
        ::cuda_cpu::surface_read(&value, s, __VA_ARGS__, mode, at);                               \
        return value;                                                                             \
    }                                                                                             \
    template <class T>                                                                            \
    inline void name##read(T* value, cudaSurfaceObject_t s, CUDA_CPU_ALL parameters,              \
                           cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, CUDA_CPU_HERE) {  \
        ::cuda_cpu::surface_read(value, s, __VA_ARGS__, mode, at);                                \
    }                                                                                             \
    template <class T>                                                                            \
    inline void name##write(T value, cudaSurfaceObject_t s, CUDA_CPU_ALL parameters,              \
                            cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, CUDA_CPU_HERE) { \
        ::cuda_cpu::surface_write(value, s, __VA_ARGS__, mode, at);                               \
    }
CUDA_CPU_SURFACE(surf1D, (int x), x, 0, 0, 1, false)
CUDA_CPU_SURFACE(surf2D, (int x, int y), x, y, 0, 2, false)
CUDA_CPU_SURFACE(surf3D, (int x, int y, int z), x, y, z, 3, false)
CUDA_CPU_SURFACE(surf1DLayered, (int x, int layer), x, 0, layer, 1, true)
CUDA_CPU_SURFACE(surf2DLayered, (int x, int y, int layer), x, y, layer, 2, true)
#undef CUDA_CPU_SURFACE
#undef CUDA_CPU_ALL
