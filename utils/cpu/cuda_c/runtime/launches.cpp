// Launches: which kernels there are, what a launch may ask for, and how it comes to run_grid
// (grids.cpp).
#include <algorithm>
#include <map>
#include "api.h"

namespace cuda_cpu {
extern bool quiet;

thread_local Config pending;

bool configure(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, Site at) {
    pending = {grid, block, shared, stream, at, false, true};
    return true;
}
bool configure(dim3 grid, dim3 block, size_t shared, int, Site at) {
    return configure(grid, block, shared, nullptr, at);
}

struct KnownKernel {
    Invoker invoke;
    const char* name;
    int n_params;
};
static std::map<const void*, KnownKernel>& kernels() {
    static auto* m = new std::map<const void*, KnownKernel>;
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
    if (c.grid.x % size.x || c.grid.y % size.y || c.grid.z % size.z) {
        note(at,
             "kernel `%s` is launched with a grid of (%u,%u,%u) blocks in clusters of (%u,%u,%u): "
             "the grid must be a multiple of the cluster [cluster]",
             k.name, c.grid.x, c.grid.y, c.grid.z, size.x, size.y, size.z);
        return cudaErrorInvalidClusterSize;
    }
    if (blocks > most_in_cluster(k)) {
        note(at,
             "kernel `%s` is launched in clusters of %u blocks; a cluster has at most %u%s "
             "[cluster]",
             k.name, blocks, most_in_cluster(k),
             k.any_cluster ? ""
                           : ", or 16 after cudaFuncSetAttribute(kernel, "
                             "cudaFuncAttributeNonPortableClusterSizeAllowed, 1)");
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
    g.callers = c.callers;
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
        check_canaries(work.kernel->name, c.callers, c.at);
    close_after_kernel(g.device);
    return cudaSuccess;  // as on a GPU: a later call, which waits for the kernel, has the error
}

static std::string kernel_text(const Kernel& k, const Config& c) {
    if (!checking)
        return "";
    return c.callers.count ? library_call(c.callers).name : std::string("kernel `") + k.name + "`";
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
    c.callers = callers_of_library(k);
    if (checking && c.callers.count)
        c.at = library_call(c.callers).at;
    if (broken())
        return;
    if (callback_running() && sticky_error())
        return;
    cudaError_t wrong = launch_error(k, c, c.at);
    if (!wrong)
        wrong = cluster_error(k, c, c.at);
    if (wrong) {
        launch_failed(wrong, c.at, k.name);
        return;
    }
    if (!live_stream(c.stream))
        return;
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
        begin_operation(stream_of(c.stream), c.at, kernel_text(k, c).c_str());
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
    auto again = [c, work, body] {
        Work w = work;
        w.body = body.get();
        return run_launch(c, w);
    };
    in_stream(c.stream, cudaGraphNodeTypeKernel, true, again, c.at, kernel_text(k, c).c_str());
}

static thread_local dim3 next_cluster(0, 0, 0);
void set_cluster(unsigned x, unsigned y, unsigned z) {
    next_cluster = dim3(x, y, z);
}
cudaError_t launch_kernel_by_address(const void* f, dim3 grid, dim3 block, void** args,
                                     size_t shared, cudaStream_t s, bool cooperative, Site at) {
    if (cudaError_t e = sticky_error())
        return e;
    KnownKernel k;
    {
        std::lock_guard<std::mutex> l(kernels_lock);
        auto i = kernels().find(f);
        if (i == kernels().end())
            return fail(cudaErrorInvalidDeviceFunction);
        k = i->second;
    }
    return with_errors_apart([&] {
        pending = {grid, block, shared, s, at, cooperative, true, next_cluster};
        next_cluster = dim3(0, 0, 0);
        k.invoke(const_cast<void*>(f), args);
    });
}

// The Kernel that belongs to a stub's address: asks the stub itself, with arguments that it does
// not look at.
Kernel* kernel_of(const void* f) {
    KnownKernel k;
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
}  // namespace cuda_cpu
