// Streams and events. Work in a stream is done at once, in the order of the calls: one of the
// orders that a GPU may choose. Only a stream that is being captured keeps its work for later.
#include <time.h>
#include <unordered_set>
#include "api.h"

namespace cuda_cpu {
// The streams and events that programs hold. After a failed cudaEventCreate that nobody asked about
// a handle is whatever was in its place: an error, not a crash.
struct Handles {
    std::mutex lock;
    std::unordered_set<const void*> live;
    void add(const void* handle) {
        std::lock_guard<std::mutex> l(lock);
        live.insert(handle);
    }
    bool has(const void* handle) {
        std::lock_guard<std::mutex> l(lock);
        return live.count(handle);
    }
    void remove(const void* handle) {
        std::lock_guard<std::mutex> l(lock);
        live.erase(handle);
    }
};
static Handles& handles() {
    static auto* all = new Handles;
    return *all;
}

Stream::Stream() {
    handles().add(this);
}
Stream::~Stream() {
    handles().remove(this);
}
Event::Event() {
    handles().add(this);
}
Event::~Event() {
    handles().remove(this);
}

// A small number stands for the default stream, of which each device has one.
Stream* stream_of(cudaStream_t s) {
    static Stream* defaults = [] {
        Stream* all = new Stream[most_devices];
        for (int d = 0; d < most_devices; ++d) {
            all[d].device = d;
            all[d].is_default = true;
        }
        return all;
    }();
    static Stream* none = [] {
        Stream* destroyed = new Stream;
        destroyed->destroyed = true;
        return destroyed;
    }();
    if (size_t(s) <= 4)
        return &defaults[this_device()];
    return handles().has(s) ? s : none;
}
Stream* live_stream(cudaStream_t handle) {
    Stream* s = stream_of(handle);
    if (!s->destroyed)
        return s;
    fail(cudaErrorInvalidResourceHandle);
    return nullptr;
}

// Does the work now, or puts it into the graph that the stream is capturing.
cudaError_t in_stream(cudaStream_t handle, cudaGraphNodeType type, bool async,
                      std::function<cudaError_t()> f, Site at, const char* what) {
    Stream* s = live_stream(handle);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (s->capture) {
        add_to_capture(s, type, std::move(f), at, what);
        return cudaSuccess;
    }
    if (!async && captures(s->device))
        return fail(cudaErrorStreamCaptureUnsupported);
    if (broken())
        return sticky_error();
    Turn turn;
    begin_operation(s, at, what);
    cudaError_t e = f();
    if (!async && !in_kernel())
        flush_printed();
    return e;
}
}  // namespace cuda_cpu

using namespace cuda_cpu;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned flags, int priority) {
    if (cudaError_t e = sticky_error())
        return e;
    *s = new Stream();
    (*s)->flags = flags;
    (*s)->priority = priority;
    (*s)->device = this_device();
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* s) {
    return cudaStreamCreateWithPriority(s, 0, 0);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
    return cudaStreamCreateWithPriority(s, flags, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    if (size_t(s) <= 4)
        return fail(cudaErrorInvalidResourceHandle);
    if (!live_stream(s))
        return cudaErrorInvalidResourceHandle;
    flush_printed();
    s->destroyed = true;  // kept: work in it may be under way
    return sticky_error();
}
cudaError_t cudaStreamSynchronize(cudaStream_t h) {
    Stream* s = live_stream(h);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (s->capture)
        return fail(cudaErrorStreamCaptureUnsupported);
    flush_printed();
    asked();
    order_host_behind(s);
    return wait_for_device();
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
    return cudaStreamSynchronize(s);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t h, cudaEvent_t e, unsigned) {
    if (!handles().has(e))
        return fail(cudaErrorInvalidResourceHandle);
    Stream* s = live_stream(h);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (e->capture && !s->capture)
        begin_capture(s, e->capture);  // the stream joins the capture
    if (!s->capture)
        order_wait(s, e);
    return sticky_error();
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void* data, unsigned) {
    if (broken() && !stream_of(s)->capture) {  // this one is told, and runs
        Callback here;
        f(s, kernel_error(), data);
        return sticky_error();
    }
    return in_stream(s, cudaGraphNodeTypeHost, true, [=] {
        Callback here;
        f(s, cudaSuccess, data);
        return cudaSuccess;
    });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* data) {
    if (cudaError_t e = sticky_error())
        return e;
    return in_stream(s, cudaGraphNodeTypeHost, true, [=] {
        Callback here;
        f(data);
        return cudaSuccess;
    });
}
cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* p) {
    Stream* s = live_stream(handle);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    *p = s->priority;
    return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* f) {
    Stream* s = live_stream(handle);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    *f = s->flags;
    return cudaSuccess;
}
cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long* id) {
    *id = size_t(s);
    return cudaSuccess;
}
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaLaunchAttributeID,
                                   const cudaLaunchAttributeValue*) {
    return sticky_error();
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) {
    return sticky_error();
}

// ---- events
static double seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
    if (cudaError_t s = sticky_error())
        return s;
    *e = new Event();
    (*e)->flags = flags;
    (*e)->device = this_device();
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) {
    return cudaEventCreateWithFlags(e, 0);
}
cudaError_t cudaEventCreate(cudaEvent_t* e, unsigned flags) {
    return cudaEventCreateWithFlags(e, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    if (!handles().has(e))
        return fail(cudaErrorInvalidResourceHandle);
    delete e;
    return sticky_error();
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t handle) {
    if (!handles().has(e))
        return fail(cudaErrorInvalidResourceHandle);
    Stream* s = live_stream(handle);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (cudaError_t k = sticky_error())
        return k;
    if (e->device != s->device)  // an event is of its device, too
        return fail(cudaErrorInvalidResourceHandle);
    e->capture = s->capture;
    if (!e->capture)
        order_record(e, s);
    e->recorded = !e->capture;
    e->time = seconds();
    return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned) {
    return cudaEventRecord(e, s);
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    if (!handles().has(e))
        return fail(cudaErrorInvalidResourceHandle);
    flush_printed();
    asked();
    order_host_behind(e);
    return wait_for_device();
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
    return cudaEventSynchronize(e);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
    if (cudaError_t e = wait_for_device())
        return e;
    if (!handles().has(a) || !handles().has(b) || !a->recorded || !b->recorded ||
        (a->flags | b->flags) & cudaEventDisableTiming || a->device != b->device)
        return fail(cudaErrorInvalidResourceHandle);
    *ms = float((b->time - a->time) * 1e3);
    return cudaSuccess;
}
