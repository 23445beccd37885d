// Textures and surfaces: a texture object is a number that names an array or other memory.
// Source: CUDA C++ Programming Guide, "Texture Fetching": filtering weights are 9-bit fixed point
// with 8 bits of fraction.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include "../include/detail/ptx/values.h"
#include "../include/detail/textures.h"
#include "arrays.h"

namespace cuda_cpu {
// Memory as a texture or a surface sees it.
struct View {
    char* memory;
    cudaChannelFormatDesc desc;
    size_t size[3];  // in elements
    size_t pitch, slice;  // bytes from row to row, from slice to slice
    int dimensions;
    size_t layers;  // 0: not layered
    cudaResourceDesc resource;
    cudaTextureDesc how;
    bool surface;
};
// Numbers of objects are never used twice, so one that has been destroyed is told from the others.
static std::map<unsigned long long, std::shared_ptr<View>> views;
static unsigned long long last_view = 0;
static std::mutex views_lock;
static std::atomic<unsigned> generation{0};  // changes when an object ends

static std::shared_ptr<View> find_view(unsigned long long number) {
    std::lock_guard<std::mutex> l(views_lock);
    auto found = views.find(number);
    return found == views.end() ? nullptr : found->second;
}
// The view of an object that a kernel uses; a thread of the host asks for the same one many times.
static View* view_of(unsigned long long number, bool surface, Site at) {
    static thread_local unsigned long long known_number = 0;
    static thread_local unsigned known_generation = 0;
    static thread_local std::shared_ptr<View> known;
    if (known_number != number || known_generation != generation || !known) {
        known_generation = generation;
        known = find_view(number);
        known_number = number;
    }
    const char* word = surface ? "surface" : "texture";
    if (!known || known->surface != surface) {
        report("texture", at,
               "there is no %s object %llu: none was created, or it has been destroyed", word,
               number);
        abandon_grid(cudaErrorIllegalAddress);
    }
    return known.get();
}

static cudaError_t view_resource(View& v, const cudaResourceDesc& r) {
    v.resource = r;
    v.layers = 0;
    if (r.resType == cudaResourceTypeArray) {
        const Array* a = r.res.array.array;
        if (!a)
            return cudaErrorInvalidValue;
        v.memory = a->memory;
        v.desc = a->desc;
        v.pitch = a->pitch();
        v.slice = v.pitch * a->rows();
        v.dimensions = a->extent.height ? 2 : 1;
        if (a->layered())
            v.layers = a->slices();
        else if (a->extent.depth)
            v.dimensions = 3;
        v.size[0] = a->extent.width;
        v.size[1] = a->rows();
        v.size[2] = a->slices();
        return cudaSuccess;
    }
    bool linear = r.resType == cudaResourceTypeLinear;
    if (!linear && r.resType != cudaResourceTypePitch2D)
        return cudaErrorNotSupported;
    v.desc = linear ? r.res.linear.desc : r.res.pitch2D.desc;
    v.memory = static_cast<char*>(linear ? r.res.linear.devPtr : r.res.pitch2D.devPtr);
    if (!v.memory || !is_valid(v.desc))
        return cudaErrorInvalidValue;
    size_t bytes = element_bytes(v.desc);
    v.dimensions = linear ? 1 : 2;
    v.size[0] = linear ? r.res.linear.sizeInBytes / bytes : r.res.pitch2D.width;
    v.size[1] = linear ? 1 : r.res.pitch2D.height;
    v.size[2] = 1;
    v.pitch = linear ? r.res.linear.sizeInBytes : r.res.pitch2D.pitchInBytes;
    v.slice = v.pitch * v.size[1];
    return linear || v.pitch % 32 == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

// ---- elements
static float normalized(unsigned bits, int width, bool is_signed) {
    if (!is_signed)
        return float(bits) / float((1ull << width) - 1);
    int value = width == 8 ? int((signed char)bits) : int(short(bits));
    return std::max(float(value) / float((1 << (width - 1)) - 1), -1.0f);
}
static void decode(const View& v, const char* p, Texel* out) {
    int n = channels_of(v.desc);
    size_t bytes = size_t(v.desc.x) / 8;
    bool is_signed = v.desc.f == cudaChannelFormatKindSigned;
    for (int c = 0; c < 4; ++c) {
        unsigned bits = 0;
        if (c < n)
            memcpy(&bits, p + size_t(c) * bytes, bytes);
        if (is_signed && bytes < 4)
            bits = bytes == 1 ? unsigned(int((signed char)bits)) : unsigned(int(short(bits)));
        out->bits[c] = bits;
        if (v.desc.f != cudaChannelFormatKindFloat)
            out->number[c] = normalized(bits & ((1ull << v.desc.x) - 1), v.desc.x, is_signed);
        else if (bytes == 2)
            out->number[c] = ptx::worth(ptx::f16{(unsigned short)bits});
        else
            memcpy(&out->number[c], &bits, 4);
        if (c >= n)
            out->number[c] = 0;
    }
}
static void border(const View& v, Texel* out) {
    for (int c = 0; c < 4; ++c) {
        float colour = v.resource.resType == cudaResourceTypeLinear ? 0 : v.how.borderColor[c];
        out->number[c] = colour;
        memcpy(&out->bits[c], &colour, 4);
        if (v.desc.f != cudaChannelFormatKindFloat)
            out->bits[c] = unsigned(int(colour));
    }
}

// ---- addresses: which of n elements stands for number i, -1 for the border
static long address(long i, long n, cudaTextureAddressMode mode) {
    switch (mode) {
        case cudaAddressModeWrap:
            return ((i % n) + n) % n;
        case cudaAddressModeMirror: {
            long j = ((i % (2 * n)) + 2 * n) % (2 * n);
            return j < n ? j : 2 * n - 1 - j;
        }
        case cudaAddressModeBorder:
            return i < 0 || i >= n ? -1 : i;
        default:
            return std::clamp(i, 0l, n - 1);
    }
}
static cudaTextureAddressMode mode_of(const View& v, int d) {
    cudaTextureAddressMode mode = v.how.addressMode[d];
    bool repeats = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;
    return repeats && !v.how.normalizedCoords ? cudaAddressModeClamp : mode;
}
static void element(const View& v, const long* i, int layer, Texel* out) {
    const char* p = v.memory;
    size_t steps[3] = {element_bytes(v.desc), v.pitch, v.slice};
    for (int d = 0; d < v.dimensions; ++d) {
        long at = address(i[d], long(v.size[d]), mode_of(v, d));
        if (at < 0)
            return border(v, out);
        p += size_t(at) * steps[d];
    }
    if (v.layers)
        p += size_t(std::clamp(long(layer), 0l, long(v.layers) - 1)) * v.slice;
    decode(v, p, out);
}
static long whole(float x) {
    return long(std::clamp(std::floor(x), -1e9f, 1e9f));
}

// The mean of the 2, 4 or 8 elements around a place, weighted by how near they are.
static void filter(const View& v, const float* x, int layer, Texel* out) {
    long first[3] = {0, 0, 0};
    float weight[3] = {0, 0, 0};
    for (int d = 0; d < v.dimensions; ++d) {
        float place = x[d] - 0.5f;
        first[d] = whole(place);
        weight[d] = std::floor((place - float(first[d])) * 256 + 0.5f) / 256;
    }
    float sums[4] = {0, 0, 0, 0};
    for (int corner = 0; corner < 1 << v.dimensions; ++corner) {
        long i[3];
        float share = 1;
        for (int d = 0; d < v.dimensions; ++d) {
            bool upper = corner >> d & 1;
            i[d] = first[d] + upper;
            share *= upper ? weight[d] : 1 - weight[d];
        }
        Texel texel;
        element(v, i, layer, &texel);
        for (int c = 0; c < 4; ++c)
            if (share != 0)
                sums[c] += share * texel.number[c];
    }
    for (int c = 0; c < 4; ++c)
        out->number[c] = sums[c];
}

static void check_kind(const View& v, bool wants_float, Site at) {
    bool gives_float =
        v.desc.f == cudaChannelFormatKindFloat || v.how.readMode == cudaReadModeNormalizedFloat;
    if (gives_float == wants_float)
        return;
    report("texture", at, "this texture gives %s, and the kernel asks for %s",
           gives_float ? "floats" : "integers", wants_float ? "floats" : "integers");
    abandon_grid(cudaErrorIllegalAddress);
}
void read_texture(Texel* out, cudaTextureObject_t t, const Coordinates& where, bool wants_float,
                  Site at) {
    const View& v = *view_of(t, false, at);
    check_kind(v, wants_float, at);
    bool flat = where.dimensions < v.dimensions && v.size[1] == 1 && v.size[2] == 1;
    if ((where.dimensions != v.dimensions && !flat) || (where.layer >= 0) != (v.layers > 0)) {
        report("texture", at, "a read in %d dimensions%s of a texture with %d%s", where.dimensions,
               where.layer >= 0 ? " and layers" : "", v.dimensions, v.layers ? " and layers" : "");
        abandon_grid(cudaErrorIllegalAddress);
    }
    float x[3];
    long i[3] = {0, 0, 0};
    for (int d = 0; d < v.dimensions; ++d) {
        x[d] = v.how.normalizedCoords ? where.at[d] * float(v.size[d]) : where.at[d];
        i[d] = whole(x[d]);
    }
    if (v.how.filterMode == cudaFilterModeLinear)
        filter(v, x, where.layer, out);
    else
        element(v, i, where.layer, out);
}
void fetch_texture(Texel* out, cudaTextureObject_t t, int i, bool wants_float, Site at) {
    const View& v = *view_of(t, false, at);
    check_kind(v, wants_float, at);
    if (i >= 0 && size_t(i) < v.size[0])
        decode(v, v.memory + size_t(i) * element_bytes(v.desc), out);
    else
        memset(static_cast<void*>(out), 0, sizeof *out);
}

char* surface_element(cudaSurfaceObject_t s, int x, int y, int z, int dimensions, bool layered,
                      unsigned bytes, cudaSurfaceBoundaryMode mode, Site at) {
    const View& v = *view_of(s, true, at);
    size_t size = element_bytes(v.desc);
    if (dimensions != v.dimensions || layered != (v.layers > 0) || bytes != size) {
        report("surface", at,
               "an access of %u bytes in %d dimensions%s to a surface of %zu in %d%s", bytes,
               dimensions, layered ? " and layers" : "", size, v.dimensions,
               v.layers ? " and layers" : "");
        abandon_grid(cudaErrorIllegalAddress);
    }
    if (x % int(size)) {
        report("misaligned", at,
               "x of a surface counts bytes: %d is no multiple of the element's %zu", x, size);
        abandon_grid(cudaErrorMisalignedAddress);
    }
    long i[3] = {x / int(size), y, z};
    size_t steps[3] = {size, v.pitch, v.slice};
    char* p = v.memory;
    int used = layered ? 3 : dimensions;
    for (int d = 0; d < used; ++d) {
        long n = d == 2 && layered ? long(v.layers) : long(v.size[d]);
        if (i[d] < 0 || i[d] >= n) {
            if (mode == cudaBoundaryModeZero)
                return nullptr;
            if (mode == cudaBoundaryModeTrap) {
                report("out-of-bounds", at,
                       "element %ld of %ld along %c of this surface (cudaBoundaryModeTrap)", i[d],
                       n, "xyz"[d]);
                abandon_grid(cudaErrorIllegalAddress);
            }
            i[d] = std::clamp(i[d], 0l, n - 1);
        }
        p += size_t(i[d]) * steps[d];
    }
    return p;
}

}  // namespace cuda_cpu

using namespace cuda_cpu;

// ---- objects
static cudaError_t add_view(unsigned long long* number, const cudaResourceDesc* resource,
                            const cudaTextureDesc* how) {
    if (!number || !resource)
        return fail(cudaErrorInvalidValue);
    auto v = std::make_shared<View>();
    if (cudaError_t e = view_resource(*v, *resource))
        return fail(e);
    v->surface = !how;
    if (how)
        v->how = *how;
    bool integers = v->desc.f != cudaChannelFormatKindFloat;
    bool as_they_are = how && how->readMode == cudaReadModeElementType;
    if (how && how->filterMode == cudaFilterModeLinear && integers && as_they_are)
        return fail(cudaErrorInvalidFilterSetting);
    if (how && !as_they_are && integers && v->desc.x == 32)
        return fail(cudaErrorInvalidNormSetting);
    std::lock_guard<std::mutex> l(views_lock);
    *number = ++last_view;
    views[*number] = v;
    return cudaSuccess;
}
static cudaError_t end_view(unsigned long long number) {
    std::lock_guard<std::mutex> l(views_lock);
    ++generation;
    return number == 0 || views.erase(number) ? cudaSuccess : fail(cudaErrorInvalidValue);
}
cudaError_t cudaCreateTextureObject(cudaTextureObject_t* t, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* how, const cudaResourceViewDesc* view) {
    if (!how)
        return fail(cudaErrorInvalidValue);
    return view || how->sRGB ? fail(cudaErrorNotSupported) : add_view(t, resource, how);
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t t) {
    return end_view(t);
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* out, cudaTextureObject_t t) {
    auto v = find_view(t);
    if (!v)
        return fail(cudaErrorInvalidValue);
    *out = v->resource;
    return cudaSuccess;
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* out, cudaTextureObject_t t) {
    auto v = find_view(t);
    if (!v)
        return fail(cudaErrorInvalidValue);
    *out = v->how;
    return cudaSuccess;
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* s, const cudaResourceDesc* resource) {
    if (!resource || resource->resType != cudaResourceTypeArray || !resource->res.array.array ||
        !(resource->res.array.array->flags & cudaArraySurfaceLoadStore))
        return fail(cudaErrorInvalidValue);
    return add_view(s, resource, nullptr);
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t s) {
    return end_view(s);
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* out, cudaSurfaceObject_t s) {
    return cudaGetTextureObjectResourceDesc(out, s);
}
