// Copies and fills, by one row or many, and what is checked of them first.
#include <sys/mman.h>
#include <memory>
#include "internal.h"

namespace cuda_cpu {
static bool range_ok(const void* p, size_t bytes, const char* call, const char* role, Site at) {
    if (!in_arena(p))
        return true;
    Allocation* a = find_allocation(p);
    if (!a)
        return true;
    const char* c = static_cast<const char*>(p);
    if (!a->live) {
        report("use-after-free", at, "the %s of %s was freed in line %d", role, call,
               a->freed_at.line);
        return false;
    }
    if (c < a->start || c + bytes > a->start + a->bytes) {
        report("copy-size", at,
               "%s of %zu bytes goes past the end of its %s: %zu bytes are left there (%zu from "
               "cudaMalloc in "
               "line %d). A size is in bytes: n * sizeof(type)",
               call, bytes, role,
               c < a->start || c > a->start + a->bytes ? 0 : size_t(a->start + a->bytes - c),
               a->bytes, a->at.line);
        return false;
    }
    return true;
}
static bool on_device_only(const void* p) {
    return in_device_arena(p);
}
bool on_host_only(const void* p) {
    return !in_arena(p) && !is_registered(p) && !is_static(p);
}

static const char* kind_name(cudaMemcpyKind k) {
    static const char* const names[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                        "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice",
                                        "cudaMemcpyDefault"};
    return unsigned(k) < 5 ? names[k] : "an unknown direction";
}
static bool direction_ok(const void* to, const void* from, cudaMemcpyKind kind, Site at) {
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind == cudaMemcpyDefault)
        return true;
    const char* wrong = nullptr;
    if (to_device && on_host_only(to))
        wrong = "the destination is host memory";
    if (!to_device && on_device_only(to))
        wrong = "the destination is device memory";
    if (from_device && on_host_only(from))
        wrong = "the source is host memory";
    if (!from_device && on_device_only(from))
        wrong = "the source is device memory";
    if (!wrong)
        return true;
    report("copy-direction", at,
           "this copy says %s, but %s (the order is destination, source, bytes, direction)",
           kind_name(kind), wrong);
    return false;
}

static cudaError_t copy_rows(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h,
                             Site at) {
    Open open;
    for (size_t y = 0; checking && y < h; ++y) {
        check_range(static_cast<const char*>(from) + y * fp, w, false, at);
        check_range(static_cast<char*>(to) + y * tp, w, true, at);
        checks_copied(static_cast<char*>(to) + y * tp, static_cast<const char*>(from) + y * fp, w,
                      at);
    }
    for (size_t y = 0; y < h; ++y)
        memmove(static_cast<char*>(to) + y * tp, static_cast<const char*>(from) + y * fp, w);
    return cudaSuccess;
}
cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s,
                 bool async, Site at) {
    return copy_2d(to, bytes, from, bytes, bytes, 1, kind, s, async, at);
}
cudaError_t copy_2d(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h,
                    cudaMemcpyKind kind, cudaStream_t s, bool async, Site at, const char* call) {
    if (cudaError_t e = async ? sticky_error() : wait_for_device())
        return e;
    if (w == 0 || h == 0)
        return cudaSuccess;
    if (unsigned(kind) > 4)
        return fail(cudaErrorInvalidMemcpyDirection);
    if (!call)
        call = h > 1 ? "cudaMemcpy2D" : async ? "cudaMemcpyAsync" : "cudaMemcpy";
    if (!to || !from || tp < w || fp < w)
        return fail(cudaErrorInvalidValue);
    if (!in_kernel()) {
        if (!direction_ok(to, from, kind, at))
            return fail(cudaErrorInvalidValue);
        if (!range_ok(to, tp * (h - 1) + w, call, "destination", at) ||
            !range_ok(from, fp * (h - 1) + w, call, "source", at))
            return fail(cudaErrorInvalidValue);
    }
    // Memory that is not pinned: the call returns when the copy is done.
    bool waits = !async || on_host_only(to) || on_host_only(from);
    cudaError_t e = in_stream(
        s, cudaGraphNodeTypeMemcpy, async, [=] { return copy_rows(to, tp, from, fp, w, h, at); },
        at, call);
    if (waits && !stream_of(s)->capture)
        order_host_behind(stream_of(s));
    return e;
}
// Each pointer must be of the device that is named for it.
static bool of_named_device(const void* p, int device, const char* role, Site at) {
    Allocation* a = in_arena(p) ? find_allocation(p) : nullptr;
    if (!a || a->kind != cudaMemoryTypeDevice || a->device == device)
        return true;
    report("wrong-device", at,
           "this peer copy says that its %s is memory of device %d, but it is of device %d (from "
           "cudaMalloc in line %d; the order is destination, its device, source, its device)",
           role, device, a->device, a->at.line);
    return false;
}
cudaError_t copy_peer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                      cudaStream_t s, bool async, Site at) {
    for (int device : {to_device, from_device})
        if (device < 0 || device >= device_count())
            return fail(cudaErrorInvalidDevice);
    if (!of_named_device(to, to_device, "destination", at) ||
        !of_named_device(from, from_device, "source", at))
        return fail(cudaErrorInvalidValue);
    return copy_2d(to, bytes, from, bytes, bytes, 1, cudaMemcpyDeviceToDevice, s, async, at,
                   async ? "cudaMemcpyPeerAsync" : "cudaMemcpyPeer");
}
// Large memory is zeroed by giving its pages back: who opens, closes or copies what no kernel uses
// afterwards does not pay for it.
static void set_bytes(char* p, int value, size_t bytes) {
#ifdef __linux__
    constexpr uintptr_t page = 65536, large = 1 << 24;  // any system's page or several of them
    uintptr_t start = reinterpret_cast<uintptr_t>(p), end = start + bytes;
    uintptr_t first = (start + page - 1) / page * page, last = end / page * page;
    if (!(value & 255) && bytes > large && in_arena(p) &&
        madvise(p + (first - start), last - first, MADV_DONTNEED) == 0) {
        memset(p, 0, first - start);
        memset(p + (last - start), 0, end - last);
        return;
    }
#endif
    memset(p, value, bytes);
}
cudaError_t fill(void* p, int value, size_t bytes, cudaStream_t s, bool async, Site at) {
    if (cudaError_t e = async ? sticky_error() : wait_for_device())
        return e;
    if (bytes == 0)
        return cudaSuccess;
    if (!p)
        return fail(cudaErrorInvalidValue);
    if (!in_kernel()) {
        if (on_host_only(p)) {
            report("host-pointer", at,
                   "cudaMemset is given a pointer to host memory; memset is for that");
            return fail(cudaErrorInvalidValue);
        }
        if (!range_ok(p, bytes, "cudaMemset", "memory", at))
            return fail(cudaErrorInvalidValue);
    }
    cudaError_t e = in_stream(
        s, cudaGraphNodeTypeMemset, async,
        [=] {
            Open open;
            check_range(p, bytes, true, at);
            set_bytes(static_cast<char*>(p), value, bytes);
            return cudaSuccess;
        },
        at, "cudaMemset");
    if (!async)
        order_host_behind(stream_of(s));
    return e;
}
cudaError_t copy_symbol(void* symbol, size_t symbol_bytes, void* host, size_t bytes, size_t offset,
                        bool to_symbol, cudaStream_t s, bool async, Site at) {
    if (cudaError_t e = async ? sticky_error() : wait_for_device())
        return e;
    if (offset + bytes > symbol_bytes) {
        report(
            "copy-size", at,
            "%s of %zu bytes at offset %zu goes past the end of the variable, which has %zu bytes",
            to_symbol ? "cudaMemcpyToSymbol" : "cudaMemcpyFromSymbol", bytes, offset, symbol_bytes);
        return fail(cudaErrorInvalidValue);
    }
    void* p = static_cast<char*>(symbol) + offset;
    return to_symbol ? copy_2d(p, bytes, host, bytes, bytes, 1, cudaMemcpyDefault, s, async, at)
                     : copy_2d(host, bytes, p, bytes, bytes, 1, cudaMemcpyDefault, s, async, at);
}
}  // namespace cuda_cpu

using namespace cuda_cpu;

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
    return cudaMemcpy3DAsync(p, nullptr);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t s) {
    cudaMemcpy3DParms q = *p;
    if (cudaError_t e = through_arrays(q))
        return fail(e);
    auto at = [](const cudaPitchedPtr& b, const cudaPos& o, size_t z) {
        return static_cast<char*>(b.ptr) + ((o.z + z) * b.ysize + o.y) * b.pitch + o.x;
    };
    for (size_t z = 0; z < q.extent.depth; ++z) {
        cudaError_t e =
            copy_2d(at(q.dstPtr, q.dstPos, z), q.dstPtr.pitch, at(q.srcPtr, q.srcPos, z),
                    q.srcPtr.pitch, q.extent.width, q.extent.height, q.kind, s, false, {"", 0});
        if (e)
            return e;
    }
    return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t s) {
    for (size_t y = 0; y < height; ++y)
        if (cudaError_t e = fill(static_cast<char*>(p) + y * pitch, value, width, s, true, {"", 0}))
            return e;
    return cudaSuccess;
}
cudaError_t cudaMemset2D(void* p, size_t pitch, int value, size_t width, size_t height) {
    return cudaMemset2DAsync(p, pitch, value, width, height, nullptr);
}
cudaError_t cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent e) {
    for (size_t z = 0; z < e.depth; ++z)
        if (cudaError_t error = cudaMemset2D(static_cast<char*>(p.ptr) + z * p.ysize * p.pitch,
                                             p.pitch, value, e.width, e.height))
            return error;
    return cudaSuccess;
}
