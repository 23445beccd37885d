// Errors, devices, launches, streams, events and graphs. Work in a stream is done at once, in the
// order of the calls: one of the orders that a GPU may choose. Only a stream that is being captured
// keeps its work for later.
#include <math.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include "internal.h"

namespace cuda_cpu {
extern bool quiet;

// ---- errors
static thread_local cudaError_t last_error = cudaSuccess;
static std::atomic<int> sticky{0};  // of a kernel that failed: nothing runs any more
static std::atomic<bool> told{
    false};  // the program has waited for the device since, and so it knows
static Site failed_launch = {"", 0};  // a launch that failed and that nobody has asked about
static cudaError_t failed_launch_error = cudaSuccess;
static std::string failed_kernel;

cudaError_t fail(cudaError_t e) {
    if (e)
        last_error = e;
    return e;
}
static thread_local bool in_callback = false;  // of a stream: no call is allowed there
bool callback_running() {
    return in_callback;
}
struct Callback {
    Callback() {
        in_callback = true;
    }
    ~Callback() {
        in_callback = false;
    }
};
static bool broken() {
    return !in_kernel() && sticky.load(std::memory_order_relaxed);
}
cudaError_t sticky_error() {
    if (in_callback)
        return fail(cudaErrorNotPermitted);
    return broken() && told ? fail(cudaError_t(sticky.load())) : cudaSuccess;
}
cudaError_t wait_for_device() {
    if (broken())
        told = true;
    return sticky_error();
}
void set_sticky(cudaError_t e) {
    int none = 0;
    sticky.compare_exchange_strong(none, int(e));
}
void reset_errors() {
    sticky = 0;
    told = false;
    last_error = cudaSuccess;
}
static void asked() {
    failed_launch_error = cudaSuccess;
}

static void launch_failed(cudaError_t e, Site at, const char* kernel) {
    fail(e);
    failed_launch = at;
    failed_launch_error = e;
    failed_kernel = kernel;
}

void on_exit_checks() {
    if (failed_launch_error)
        report("unchecked-launch", failed_launch,
               "the launch of kernel `%s` failed and nobody asked: \"%s\". The kernel did not "
               "run; check cudaGetLastError() after each launch",
               failed_kernel.c_str(), cudaGetErrorString(failed_launch_error));
}

// ---- operations and graphs
struct GraphNode {
    cudaGraphNodeType type;
    std::function<cudaError_t()> run;
    std::vector<GraphNode*> after;
};
struct Graph {
    std::vector<std::shared_ptr<GraphNode>> nodes;
    bool captured = false;
};
struct GraphExec {
    std::vector<std::shared_ptr<GraphNode>> nodes;
};
static std::vector<Stream*> capturing;

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
    return size_t(s) <= 4 ? &defaults[this_device()] : s;
}

// Does the work now, or puts it into the graph that the stream is capturing.
cudaError_t in_stream(cudaStream_t handle, cudaGraphNodeType type, bool async,
                      std::function<cudaError_t()> f, Site at, const char* what) {
    Stream* s = stream_of(handle);
    if (s->destroyed)
        return fail(cudaErrorInvalidResourceHandle);
    if (s->capture) {
        auto node = std::make_shared<GraphNode>();
        node->type = type;
        node->run = std::move(f);
        s->capture->nodes.push_back(node);
        return cudaSuccess;
    }
    if (!async &&
        !capturing.empty()) {  // a call that waits is not allowed while a stream is captured
        return fail(cudaErrorStreamCaptureUnsupported);
    }
    if (broken())
        return sticky_error();
    Turn turn;
    begin_operation(s, at, what);
    cudaError_t e = f();
    if (!async && !in_kernel())
        flush_printed();
    return e;
}

// ---- launches
thread_local Config pending;

bool configure(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, Site at) {
    pending = {grid, block, shared, stream, at, false, true};
    return true;
}
bool configure(dim3 grid, dim3 block, size_t shared, int, Site at) {
    return configure(grid, block, shared, nullptr, at);
}

struct Known {
    Invoker invoke;
    const char* name;
    int n_params;
};
static std::map<const void*, Known>& kernels() {
    static auto* m = new std::map<const void*, Known>;
    return *m;
}
static std::mutex kernels_lock;
void* kernel_named(const char* name, int n_params, Invoker* invoke) {
    std::lock_guard<std::mutex> l(kernels_lock);
    void* found = nullptr;
    for (auto& i : kernels())
        if (i.second.name && !strcmp(i.second.name, name) &&
            (!found || i.second.n_params == n_params)) {
            found = const_cast<void*>(i.first);
            *invoke = i.second.invoke;
        }
    return found;
}
void add_kernel(void* f, Invoker invoke, const char* name, int n_params) {
    std::lock_guard<std::mutex> l(kernels_lock);
    auto& k = kernels()[f];
    k.invoke = invoke;
    if (name)
        k.name = name;
    k.n_params = n_params;
}

// A launch that no device could run is cudaErrorInvalidValue since CUDA 13
// (cudaErrorInvalidConfiguration before).
static cudaError_t launch_error(const Kernel& k, const Config& c, Site at) {
    size_t threads = size_t(c.block.x) * c.block.y * c.block.z;
    if (!threads || !c.grid.x || !c.grid.y || !c.grid.z) {
        note(at,
             "kernel `%s` is launched with nothing to do: grid (%u,%u,%u), block (%u,%u,%u) "
             "[empty-launch]",
             k.name, c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z);
        return cudaErrorInvalidValue;
    }
    if (threads > 1024 || c.block.x > 1024 || c.block.y > 1024 || c.block.z > 64) {
        note(at,
             "kernel `%s` is launched with blocks of %u x %u x %u = %zu threads; at most 1024 (and "
             "64 in z) are possible "
             "[too-many-threads]",
             k.name, c.block.x, c.block.y, c.block.z, threads);
        return cudaErrorInvalidValue;
    }
    if (c.grid.x > 0x7fffffffu || c.grid.y > 65535 || c.grid.z > 65535) {
        note(at,
             "kernel `%s` is launched with a grid of (%u,%u,%u) blocks; y and z can be 65535 at "
             "most [grid-too-large]",
             k.name, c.grid.x, c.grid.y, c.grid.z);
        return cudaErrorInvalidValue;
    }
    if (k.max_threads && threads > size_t(k.max_threads)) {
        note(at,
             "kernel `%s` is launched with %zu threads a block, but its __launch_bounds__ promises "
             "at most %d "
             "[too-many-threads]",
             k.name, threads, k.max_threads);
        return cudaErrorInvalidValue;
    }
    // for Python a kernel's limit is raised as it asks
    unsigned most_shared = quiet ? shared_capacity() : k.max_dynamic_shared;
    if (c.shared + k.static_shared > most_shared) {
        note(at,
             "kernel `%s` is launched with %zu bytes of dynamic shared memory (and %u static); at "
             "most %u are possible%s "
             "[too-much-shared-memory]",
             k.name, c.shared, k.static_shared, most_shared,
             most_shared <= 49152 ? ", or more after cudaFuncSetAttribute(kernel, "
                                    "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)"
                                  : "");
        return cudaErrorInvalidValue;
    }
    if (c.cooperative && size_t(c.grid.x) * c.grid.y * c.grid.z >
                             size_t(max_resident_threads) / threads * processors) {
        note(at,
             "kernel `%s`: a cooperative launch of %zu blocks is too large; all must be resident "
             "at once, and that is "
             "%zu here [cooperative-too-large]",
             k.name, size_t(c.grid.x) * c.grid.y * c.grid.z,
             max_resident_threads / threads * processors);
        return cudaErrorCooperativeLaunchTooLarge;
    }
    return cudaSuccess;
}

static dim3 cluster_of(const Kernel& k, const Config& c) {
    if (c.cluster.x)
        return c.cluster;
    return {std::max(1u, k.cluster[0]), std::max(1u, k.cluster[1]), std::max(1u, k.cluster[2])};
}
static cudaError_t cluster_error(const Kernel& k, const Config& c, Site at) {
    dim3 size = cluster_of(k, c);
    unsigned blocks = size.x * size.y * size.z;
    if (c.grid.x % size.x || c.grid.y % size.y || c.grid.z % size.z || blocks > 16) {
        note(at,
             "kernel `%s` is launched with a grid of (%u,%u,%u) blocks in clusters of (%u,%u,%u): "
             "the "
             "grid must be a multiple of the cluster, which has at most 8 blocks [cluster]",
             k.name, c.grid.x, c.grid.y, c.grid.z, size.x, size.y, size.z);
        return cudaErrorInvalidClusterSize;
    }
    return cudaSuccess;
}

static thread_local Kernel** probe =
    nullptr;  // set: the stub that is called only says which kernel it is

static cudaError_t run_launch(const Config& c, const Work& work) {
    Turn turn;
    Grid g;
    g.device = this_device();
    g.work = work;
    g.grid = c.grid;
    g.block = c.block;
    g.shared = c.shared;
    g.at = c.at;
    g.cooperative = c.cooperative;
    g.inner = in_kernel();
    g.blocks = (unsigned long long)c.grid.x * c.grid.y * c.grid.z;
    g.cluster = cluster_of(*work.kernel, c);
    if (g.inner) {
        cudaError_t e = run_grid(g);
        if (e)
            abandon_grid(e);
        for (auto& tail : g.tails)
            tail();
        return cudaSuccess;
    }
    open_for_kernel(g.device);
    catch_signals();
    if (!quiet)
        fflush(stdout);  // a kernel that does not end leaves nothing untold
    cudaError_t e = run_grid(g);
    for (auto& tail : g.tails)
        if (!e)
            tail();
    if (e)
        set_sticky(e);
    if (!e)
        check_canaries(work.kernel->name, c.at);
    close_after_kernel(g.device);
    return cudaSuccess;  // as on a GPU: a later call, which waits for the kernel, has the error
}

static std::string kernel_text(const Kernel& k) {
    return checking ? std::string("kernel `") + k.name + "`" : "";
}
void launch(const Work& work, const PointerArg* args, int n_args, const void* caller) {
    Kernel& k = *work.kernel;
    if (probe) {
        *probe = &k;
        probe = nullptr;
        return;
    }
    if (!pending.set) {
        report("kernel-called-like-a-function", site_of(static_cast<const char*>(caller) - 1),
               "kernel `%s` is called like a function; it needs a launch: %s<<<blocks, "
               "threads>>>(...)",
               k.name, k.name);
        if (in_kernel())
            abandon_grid(cudaErrorLaunchFailure);
        std::exit(1);
    }
    Config c = pending;
    pending.set = false;
    if (broken())
        return;
    if (in_callback && sticky_error())
        return;
    cudaError_t wrong = launch_error(k, c, c.at);
    if (!wrong)
        wrong = cluster_error(k, c, c.at);
    if (wrong) {
        launch_failed(wrong, c.at, k.name);
        return;
    }
    if (stream_of(c.stream)->destroyed) {
        fail(cudaErrorInvalidResourceHandle);
        return;
    }
    if (stream_of(c.stream)->device != this_device()) {
        note(c.at,
             "kernel `%s` is launched on device %d into a stream of device %d; a kernel's stream "
             "must be of the device that is current (cudaSetDevice) [wrong-device]",
             k.name, this_device(), stream_of(c.stream)->device);
        launch_failed(cudaErrorInvalidResourceHandle, c.at, k.name);
        return;
    }
    if (!in_kernel() && !quiet && !check_launch_arguments(k, args, n_args, c.at))
        return;
    bool tail = in_kernel() && c.stream == cudaStreamTailLaunch;
    if (!tail && !stream_of(c.stream)->capture) {
        Turn turn;
        begin_operation(stream_of(c.stream), c.at, kernel_text(k).c_str());
        run_launch(c, work);
        return;
    }
    std::shared_ptr<void> body(work.clone(work.body), work.destroy);
    if (tail) {
        Grid& parent = *hot.block->grid;
        std::lock_guard<std::mutex> l(parent.lock);
        parent.tails.push_back([c, work, body] {
            Work w = work;
            w.body = body.get();
            run_launch(c, w);
        });
        return;
    }
    in_stream(c.stream, cudaGraphNodeTypeKernel, true, [c, work, body] {
        Work w = work;
        w.body = body.get();
        return run_launch(c, w);
    });
}

static thread_local dim3 next_cluster(0, 0, 0);
void set_cluster(unsigned x, unsigned y, unsigned z) {
    next_cluster = dim3(x, y, z);
}
cudaError_t launch_kernel_by_address(const void* f, dim3 grid, dim3 block, void** args,
                                     size_t shared, cudaStream_t s, bool cooperative, Site at) {
    if (cudaError_t e = sticky_error())
        return e;
    Known k;
    {
        std::lock_guard<std::mutex> l(kernels_lock);
        auto i = kernels().find(f);
        if (i == kernels().end())
            return fail(cudaErrorInvalidDeviceFunction);
        k = i->second;
    }
    cudaError_t before = last_error;
    last_error = cudaSuccess;
    pending = {grid, block, shared, s, at, cooperative, true, next_cluster};
    next_cluster = dim3(0, 0, 0);
    k.invoke(const_cast<void*>(f), args);
    cudaError_t e = last_error;
    asked();  // the caller has the code
    if (!e)
        last_error = before;
    return e;
}

// The Kernel that belongs to a stub's address: asks the stub itself, with arguments that it does
// not look at.
static Kernel* kernel_of(const void* f) {
    Known k;
    {
        std::lock_guard<std::mutex> l(kernels_lock);
        auto i = kernels().find(f);
        if (i == kernels().end()) {
            Kernel* found = nullptr;
            probe = &found;
            reinterpret_cast<void (*)()>(const_cast<void*>(f))();
            probe = nullptr;
            return found;
        }
        k = i->second;
    }
    Kernel* found = nullptr;
    static char zeros[4096];
    std::vector<void*> args(size_t(k.n_params) + 1, zeros);
    probe = &found;
    k.invoke(const_cast<void*>(f), args.data());
    probe = nullptr;
    return found;
}

cudaError_t function_attributes(cudaFuncAttributes* a, const void* f) {
    if (cudaError_t e = sticky_error())
        return e;
    Kernel* k = kernel_of(f);
    if (!k)
        return fail(cudaErrorInvalidDeviceFunction);
    *a = cudaFuncAttributes();
    a->sharedSizeBytes = k->static_shared;
    a->maxThreadsPerBlock = k->max_threads ? k->max_threads : 1024;
    a->numRegs = 32;
    a->ptxVersion = a->binaryVersion = 90;
    a->maxDynamicSharedSizeBytes = int(k->max_dynamic_shared - k->static_shared);
    a->preferredShmemCarveout = -1;
    return cudaSuccess;
}
cudaError_t set_function_attribute(const void* f, cudaFuncAttribute attribute, int value) {
    if (cudaError_t e = sticky_error())
        return e;
    Kernel* k = kernel_of(f);
    if (!k)
        return fail(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || unsigned(value) + k->static_shared > shared_capacity())
            return fail(cudaErrorInvalidValue);
        k->max_dynamic_shared = std::max(49152u, unsigned(value) + k->static_shared);
    }
    return cudaSuccess;
}
cudaError_t occupancy(int* blocks, const void* f, int block_size, size_t shared) {
    if (cudaError_t e = sticky_error())
        return e;
    if (block_size <= 0)
        return fail(cudaErrorInvalidValue);
    Kernel* k = kernel_of(f);
    size_t used = shared + (k ? k->static_shared : 0) + 1024;
    int rounded = (block_size + 31) / 32 * 32;
    *blocks = block_size > 1024 || used > shared_capacity() + 1024u
                  ? 0
                  : int(std::min<size_t>(
                        {size_t(max_resident_threads / rounded), 32, (228u << 10) / used}));
    return cudaSuccess;
}
cudaError_t best_block(int* min_grid, int* block_size, const void* f, size_t (*shared)(void*, int),
                       void* data, int limit) {
    int best = 0, best_size = 0, best_blocks = 0;
    for (int n = limit > 0 && limit < 1024 ? limit : 1024; n > 0; n -= n % 32 ? n % 32 : 32) {
        int blocks = 0;
        if (cudaError_t e = occupancy(&blocks, f, n, shared(data, n)))
            return e;
        if (blocks * n > best) {
            best = blocks * n;
            best_size = n;
            best_blocks = blocks;
        }
    }
    *min_grid = best_blocks * processors;
    *block_size = best_size;
    return cudaSuccess;
}
}  // namespace cuda_cpu

using namespace cuda_cpu;

const char* cudaGetErrorName(cudaError_t e) {
    switch (e) {
#define X(name, value, text) \
    case name:               \
        return #name;
#include "../include/detail/errors.inc"
#undef X
    }
    return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t e) {
    switch (e) {
#define X(name, value, text) \
    case name:               \
        return text;
#include "../include/detail/errors.inc"
#undef X
    }
    return "unrecognized error code";
}
// As in CUDA 13: every call after a kernel's fault returns its error again, but each report is
// handed out once.
cudaError_t cudaGetLastError() {
    asked();
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}
cudaError_t cudaPeekAtLastError() {
    asked();
    return last_error;
}

// ---- what is asked of the device that is current
namespace cuda_cpu {
void release_all();
}  // namespace cuda_cpu

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return sticky_error();
}
static size_t limits[8] = {1024, 1048576, 8388608, 2, 2048, 64, 0, 0};
cudaError_t cudaDeviceGetLimit(size_t* v, cudaLimit l) {
    if (unsigned(l) > 6)
        return fail(cudaErrorUnsupportedLimit);
    *v = limits[l];
    return sticky_error();
}
cudaError_t cudaDeviceSetLimit(cudaLimit l, size_t v) {
    if (unsigned(l) > 6)
        return fail(cudaErrorUnsupportedLimit);
    limits[l] = v;
    return sticky_error();
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* c) {
    *c = cudaFuncCachePreferNone;
    return sticky_error();
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
    return sticky_error();
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* c) {
    *c = cudaSharedMemBankSizeFourByte;
    return sticky_error();
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
    return sticky_error();
}
cudaError_t cudaSetDeviceFlags(unsigned) {
    return sticky_error();
}
cudaError_t cudaGetDeviceFlags(unsigned* f) {
    *f = 0;
    return sticky_error();
}
cudaError_t cudaDeviceSynchronize() {
    if (in_kernel())
        return cudaSuccess;
    flush_printed();
    asked();
    if (!capturing.empty())
        return fail(cudaErrorStreamCaptureUnsupported);
    order_host_behind_device(this_device());
    return wait_for_device();
}
cudaError_t cudaThreadSynchronize() {
    return cudaDeviceSynchronize();
}
cudaError_t cudaThreadExit() {
    return cudaDeviceReset();
}
cudaError_t cudaDeviceReset() {
    flush_printed();
    reset_errors();
    release_all();
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* v) {
    *v = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* v) {
    *v = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaProfilerStart() {
    return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
    return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache() {
    return cudaSuccess;
}

// ---- streams
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
    if (size_t(s) <= 4 || s->destroyed)
        return fail(cudaErrorInvalidResourceHandle);
    flush_printed();
    s->destroyed = true;  // kept: a later use is an error, not a crash
    return sticky_error();
}
cudaError_t cudaStreamSynchronize(cudaStream_t h) {
    Stream* s = stream_of(h);
    if (s->destroyed)
        return fail(cudaErrorInvalidResourceHandle);
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
    if (!e)
        return fail(cudaErrorInvalidResourceHandle);
    Stream* s = stream_of(h);
    if (e->capture && !s->capture) {
        s->capture = e->capture;  // the stream joins the capture
        capturing.push_back(s);
    }
    if (!s->capture)
        order_wait(s, e);
    return sticky_error();
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void* data, unsigned) {
    if (broken() && !stream_of(s)->capture) {  // this one is told, and runs
        Callback here;
        f(s, cudaError_t(sticky.load()), data);
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
cudaError_t cudaStreamGetPriority(cudaStream_t s, int* p) {
    *p = stream_of(s)->priority;
    return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned* f) {
    *f = stream_of(s)->flags;
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
    if (!e)
        return fail(cudaErrorInvalidResourceHandle);
    delete e;
    return sticky_error();
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    if (!e)
        return fail(cudaErrorInvalidResourceHandle);
    if (cudaError_t k = sticky_error())
        return k;
    if (e->device != stream_of(s)->device)  // an event is of its device, too
        return fail(cudaErrorInvalidResourceHandle);
    e->capture = stream_of(s)->capture;
    if (!e->capture)
        order_record(e, stream_of(s));
    e->recorded = !e->capture;
    e->time = seconds();
    return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned) {
    return cudaEventRecord(e, s);
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    if (!e)
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
    if (!a || !b || !a->recorded || !b->recorded ||
        (a->flags | b->flags) & cudaEventDisableTiming || a->device != b->device)
        return fail(cudaErrorInvalidResourceHandle);
    *ms = float((b->time - a->time) * 1e3);
    return cudaSuccess;
}

// ---- graphs
cudaError_t cudaStreamBeginCapture(cudaStream_t h, cudaStreamCaptureMode) {
    Stream* s = stream_of(h);
    if (s->is_default)
        return fail(cudaErrorStreamCaptureUnsupported);
    if (s->capture)
        return fail(cudaErrorIllegalState);
    s->capture = new Graph();
    s->capture->captured = true;
    s->origin = true;
    capturing.push_back(s);
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t h, cudaGraph_t* g) {
    Stream* s = stream_of(h);
    if (!s->capture || !s->origin)
        return fail(cudaErrorIllegalState);
    *g = s->capture;
    s->origin = false;
    for (Stream*& other : capturing)
        if (other->capture == *g) {
            other->capture = nullptr;
            other = nullptr;
        }
    capturing.erase(std::remove(capturing.begin(), capturing.end(), nullptr), capturing.end());
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
    *status = stream_of(s)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
    return cudaSuccess;
}
cudaError_t cudaGraphCreate(cudaGraph_t* g, unsigned) {
    *g = new Graph();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    if (!g)
        return fail(cudaErrorInvalidValue);
    delete g;
    return cudaSuccess;
}
// Nodes in an order in which each comes after those it depends on.
static std::vector<std::shared_ptr<GraphNode>> in_order(Graph* g) {
    std::vector<std::shared_ptr<GraphNode>> out, left = g->nodes;
    while (!left.empty()) {
        size_t before = left.size();
        for (size_t i = 0; i < left.size();) {
            bool ready =
                std::all_of(left[i]->after.begin(), left[i]->after.end(), [&](GraphNode* n) {
                    return std::none_of(left.begin(), left.end(),
                                        [&](auto& l) { return l.get() == n; });
                });
            if (ready) {
                out.push_back(left[i]);
                left.erase(left.begin() + long(i));
            } else {
                ++i;
            }
        }
        if (left.size() == before)
            break;  // a cycle
    }
    return out;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long) {
    if (!e || !g)
        return fail(cudaErrorInvalidValue);
    *e = new GraphExec{in_order(g)};
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, cudaGraphNode_t* bad, char* log,
                                 size_t size) {
    if (bad)
        *bad = nullptr;
    if (log && size)
        *log = 0;
    return cudaGraphInstantiate(e, g, 0);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* e, cudaGraph_t g,
                                          unsigned long long flags) {
    return cudaGraphInstantiate(e, g, flags);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
    if (!e)
        return fail(cudaErrorInvalidValue);
    if (cudaError_t k = sticky_error())
        return k;
    auto nodes = e->nodes;
    return in_stream(s, cudaGraphNodeTypeGraph, true, [nodes] {
        for (auto& n : nodes)
            if (n->run && !broken())
                if (cudaError_t k = n->run())
                    return k;
        return cudaSuccess;
    });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
    return sticky_error();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
    delete e;
    return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t e, cudaGraph_t g,
                                cudaGraphExecUpdateResultInfo* info) {
    if (info)
        *info = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
    if (e->nodes.size() != g->nodes.size()) {
        if (info)
            info->result = cudaGraphExecUpdateError;
        return fail(cudaErrorGraphExecUpdateFailure);
    }
    e->nodes = in_order(g);
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t* nodes, size_t* count) {
    if (nodes)
        for (size_t i = 0; i < *count && i < g->nodes.size(); ++i)
            nodes[i] = g->nodes[i].get();
    *count = g->nodes.size();
    return cudaSuccess;
}
cudaError_t cudaGraphClone(cudaGraph_t* to, cudaGraph_t from) {
    *to = new Graph(*from);
    return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t n, cudaGraphNodeType* t) {
    *t = n->type;
    return cudaSuccess;
}

static cudaError_t add_node(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* after,
                            size_t n, cudaGraphNodeType type, std::function<cudaError_t()> run) {
    auto node = std::make_shared<GraphNode>();
    node->type = type;
    node->run = std::move(run);
    if (n)
        node->after.assign(after, after + n);
    g->nodes.push_back(node);
    *out = node.get();
    return cudaSuccess;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* after, size_t n,
                                   const cudaKernelNodeParams* p) {
    // The arguments' values are taken now: the stub is called as in a capture and its work is kept.
    Stream capture;
    Graph taken;
    capture.capture = &taken;
    cudaError_t e = launch_kernel_by_address(p->func, p->gridDim, p->blockDim, p->kernelParams,
                                             p->sharedMemBytes, &capture, false, {"", 0});
    if (e)
        return e;
    auto node = taken.nodes.at(0);
    return add_node(out, g, after, n, cudaGraphNodeTypeKernel, node->run);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t g,
                                     const cudaGraphNode_t* after, size_t n, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind) {
    return add_node(out, g, after, n, cudaGraphNodeTypeMemcpy,
                    [=] { return copy(to, from, bytes, kind, nullptr, true, {"", 0}); });
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* after, size_t n,
                                   const cudaMemcpy3DParms* p) {
    cudaMemcpy3DParms q = *p;
    return add_node(out, g, after, n, cudaGraphNodeTypeMemcpy, [q] { return cudaMemcpy3D(&q); });
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* after, size_t n,
                                   const cudaMemsetParams* p) {
    cudaMemsetParams q = *p;
    return add_node(out, g, after, n, cudaGraphNodeTypeMemset, [q] {
        open_device();
        for (size_t y = 0; y < q.height; ++y)
            for (size_t x = 0; x < q.width; ++x)
                memcpy((char*)q.dst + y * q.pitch + x * q.elementSize, &q.value, q.elementSize);
        close_device();
        return cudaSuccess;
    });
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* after,
                                 size_t n, const cudaHostNodeParams* p) {
    cudaHostNodeParams q = *p;
    return add_node(out, g, after, n, cudaGraphNodeTypeHost, [q] {
        Callback here;
        q.fn(q.userData);
        return cudaSuccess;
    });
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* after,
                                  size_t n) {
    return add_node(out, g, after, n, cudaGraphNodeTypeEmpty, nullptr);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t n) {
    for (size_t i = 0; i < n; ++i)
        to[i]->after.push_back(from[i]);
    return cudaSuccess;
}

namespace cuda_cpu {
long long clock_cycles() {
#if defined(__x86_64__)
    return (long long)__builtin_ia32_rdtsc();
#else
    return (long long)(seconds() * 1e9);
#endif
}
unsigned long long global_nanoseconds() {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (unsigned long long)t.tv_sec * 1000000000ull + (unsigned long long)t.tv_nsec;
}

// By bisection on erfc, which is accurate everywhere, then Newton's steps.
double inverse_normal(double p) {
    if (!(p > 0))
        return p == 0 ? -INFINITY : NAN;
    if (!(p < 1))
        return p == 1 ? INFINITY : NAN;
    double lo = -40, hi = 40;
    for (int i = 0; i < 60; ++i) {
        double mid = (lo + hi) / 2;
        (0.5 * ::erfc(-mid * M_SQRT1_2) < p ? lo : hi) = mid;
    }
    double x = (lo + hi) / 2;
    for (int i = 0; i < 2; ++i) {
        double density = ::exp(-x * x / 2) * 0.3989422804014327;
        if (density > 1e-300)
            x -= (0.5 * ::erfc(-x * M_SQRT1_2) - p) / density;
    }
    return x;
}
}  // namespace cuda_cpu
