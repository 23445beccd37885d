// CUDA's arrays: made, asked about and copied. A copy names an array's place by elements, its
// memory by bytes.
#include "arrays.h"

namespace cuda_cpu {
static char* inside(const Array* a, size_t x_bytes, size_t y) {
    return a->memory + y * a->pitch() + x_bytes;
}
static bool fits(const Array* a, size_t x, size_t y, size_t width, size_t height) {
    return a && x + width <= a->pitch() && y + height <= a->rows() * a->slices();
}
cudaError_t through_arrays(cudaMemcpy3DParms& q) {
    if (!q.srcArray && !q.dstArray)
        return cudaSuccess;
    const Array* any = q.srcArray ? q.srcArray : q.dstArray;
    size_t bytes = element_bytes(any->desc);
    q.extent.width *= bytes;
    auto name_memory = [&](const Array* a, cudaPitchedPtr& p, cudaPos& from) {
        if (!a)
            return true;
        from.x *= bytes;
        p = {a->memory, a->pitch(), a->extent.width, a->rows()};
        return from.x + q.extent.width <= a->pitch() && from.y + q.extent.height <= a->rows() &&
               from.z + q.extent.depth <= a->slices();
    };
    bool good = name_memory(q.srcArray, q.srcPtr, q.srcPos);
    good = name_memory(q.dstArray, q.dstPtr, q.dstPos) && good;
    q.srcArray = q.dstArray = nullptr;
    return good ? cudaSuccess : cudaErrorInvalidValue;
}
// `count` bytes from (x, y) on, which may end in the middle of a row.
static cudaError_t copy_rows_of(cudaArray_const_t a, size_t x, size_t y, char* host, size_t count,
                                bool to_array, cudaMemcpyKind kind, Site at) {
    while (count) {
        size_t part = std::min(count, a && x < a->pitch() ? a->pitch() - x : 0);
        if (!part || !fits(a, x, y, part, 1))
            return fail(cudaErrorInvalidValue);
        char* own = inside(a, x, y);
        cudaError_t e = to_array ? copy(own, host, part, kind, nullptr, false, at)
                                 : copy(host, own, part, kind, nullptr, false, at);
        if (e)
            return e;
        host += part;
        count -= part;
        x = 0;
        ++y;
    }
    return cudaSuccess;
}
}  // namespace cuda_cpu

using namespace cuda_cpu;

cudaError_t cudaMalloc3DArray(cudaArray_t* out, const cudaChannelFormatDesc* desc, cudaExtent e,
                              unsigned flags, Site at) {
    if (!out || !desc || !is_valid(*desc) || !e.width || flags & cudaArrayCubemap)
        return fail(cudaErrorInvalidValue);
    Array a = {*desc, e, flags, nullptr};
    void* memory = nullptr;
    size_t bytes = a.pitch() * a.rows() * a.slices();
    if (cudaError_t k = allocate(&memory, bytes, cudaMemoryTypeDevice, at))
        return k;
    a.memory = static_cast<char*>(memory);
    *out = new Array(a);
    return cudaSuccess;
}
cudaError_t cudaMallocArray(cudaArray_t* out, const cudaChannelFormatDesc* desc, size_t width,
                            size_t height, unsigned flags, Site at) {
    return cudaMalloc3DArray(out, desc, {width, height, 0}, flags, at);
}
cudaError_t cudaFreeArray(cudaArray_t a, Site at) {
    if (!a)
        return cudaSuccess;
    cudaError_t e = release(a->memory, at);
    delete a;
    return e;
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned* flags,
                             cudaArray_t a) {
    if (!a)
        return fail(cudaErrorInvalidValue);
    if (desc)
        *desc = a->desc;
    if (extent)
        *extent = a->extent;
    if (flags)
        *flags = a->flags;
    return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* desc, cudaArray_const_t a) {
    if (!desc || !a)
        return fail(cudaErrorInvalidValue);
    *desc = a->desc;
    return cudaSuccess;
}
cudaError_t cudaMemcpyToArray(cudaArray_t a, size_t x, size_t y, const void* from, size_t bytes,
                              cudaMemcpyKind kind, Site at) {
    char* host = static_cast<char*>(const_cast<void*>(from));
    return copy_rows_of(a, x, y, host, bytes, true, kind, at);
}
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t a, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind, Site at) {
    return copy_rows_of(a, x, y, static_cast<char*>(to), bytes, false, kind, at);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t a, size_t x, size_t y, const void* from,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t s, Site at) {
    if (!fits(a, x, y, width, height))
        return fail(cudaErrorInvalidValue);
    return copy_2d(inside(a, x, y), a->pitch(), from, pitch, width, height, kind, s, true, at);
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t a, size_t x, size_t y, const void* from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind, Site at) {
    if (!fits(a, x, y, width, height))
        return fail(cudaErrorInvalidValue);
    return copy_2d(inside(a, x, y), a->pitch(), from, pitch, width, height, kind, nullptr, false,
                   at);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t a, size_t x,
                                       size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t s, Site at) {
    if (!fits(a, x, y, width, height))
        return fail(cudaErrorInvalidValue);
    return copy_2d(to, pitch, inside(a, x, y), a->pitch(), width, height, kind, s, true, at);
}
cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t a, size_t x, size_t y,
                                  size_t width, size_t height, cudaMemcpyKind kind, Site at) {
    if (!fits(a, x, y, width, height))
        return fail(cudaErrorInvalidValue);
    return copy_2d(to, pitch, inside(a, x, y), a->pitch(), width, height, kind, nullptr, false, at);
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t x, size_t y, cudaArray_const_t from,
                                     size_t from_x, size_t from_y, size_t width, size_t height,
                                     cudaMemcpyKind kind, Site at) {
    if (!fits(to, x, y, width, height) || !fits(from, from_x, from_y, width, height))
        return fail(cudaErrorInvalidValue);
    return copy_2d(inside(to, x, y), to->pitch(), inside(from, from_x, from_y), from->pitch(),
                   width, height, kind, nullptr, false, at);
}
