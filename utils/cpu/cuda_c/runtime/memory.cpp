// Device, managed and pinned memory. Every allocation ends at a page that nobody may touch, freed
// addresses are not used again, and device memory is closed while host code runs: a stray access is
// a fault, which report.cpp explains.
#include <sys/mman.h>
#include <unistd.h>
#include <map>
#include <time.h>
#ifdef __APPLE__
#include <mach-o/getsect.h>
#include <mach-o/dyld.h>
#else
#include <link.h>
#endif
#include "internal.h"

namespace cuda_cpu {
static const size_t page = 16384;
static const unsigned char canary = 0xCB;

struct Arena {
    char *base = nullptr, *next = nullptr, *end = nullptr;
    bool reserve() {
        if (base)
            return true;
        for (size_t size = size_t(1) << 40; size >= size_t(1) << 32; size >>= 1) {
            void* p =
                mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (p == MAP_FAILED)
                continue;
            base = static_cast<char*>(p);
            next = base + page;
            end = base + size;
            return true;
        }
        return false;
    }
    bool holds(const void* p) const {
        return base && p >= base && p < end;
    }
};
// Device memory apart from memory that the host may use too.
static Arena device_arena, host_arena;
static std::recursive_mutex lock;
typedef std::lock_guard<std::recursive_mutex> Guard;
static std::map<const char*, Allocation>& allocations() {
    static auto* m =
        new std::map<const char*, Allocation>;  // by the first byte of their pages; freed ones stay
    return *m;
}
static std::map<const char*, size_t>& registered() {
    static auto* m = new std::map<const char*, size_t>;
    return *m;
}
static size_t live_bytes = 0, live_count = 0;
static bool closed = false;
bool leave_device_open = false;

size_t total_memory() {
    static size_t n = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)) / 4 * 3;
    return n;
}
bool in_arena(const void* p) {
    return device_arena.holds(p) || host_arena.holds(p);
}
bool in_device_arena(const void* p) {
    return device_arena.holds(p);
}

Allocation* find_allocation(const void* p) {
    Guard g(lock);
    auto& m = allocations();
    auto i = m.upper_bound(static_cast<const char*>(p));
    if (i == m.begin())
        return nullptr;
    --i;
    Allocation& a = i->second;
    return p < i->first + a.span + page ? &a : nullptr;
}

static double seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
// Device memory is open while a kernel or a copy is at work, in any host thread. Closing and
// opening costs system calls, so it stops when it has taken more than a hundredth of the time.
static int users = 0;

// Where there are several devices, a running kernel opens the memory that its device may reach, and
// a copy opens all. What one kernel may not touch stays closed unless another has opened it just
// then: --check does not depend on that.
static int kernels_of[most_devices];  // running now
static bool reached(int owner) {
    if (users)
        return true;
    for (int d = 0; d < device_count(); ++d)
        if (kernels_of[d] && may_reach(d, owner))
            return true;
    return false;
}
static void protect_by_device() {
    if (checking || leave_device_open || live_count > 1024)
        return;
    bool open[most_devices];
    for (int d = 0; d < device_count(); ++d)
        open[d] = reached(d);
    for (auto& i : allocations()) {
        Allocation& a = i.second;
        if (!a.live || a.kind != cudaMemoryTypeDevice || a.open == open[a.device])
            continue;
        a.open = open[a.device];
        mprotect(const_cast<char*>(i.first), a.span, a.open ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}
static void set_protection(bool close) {
    for (auto& i : allocations())
        if (i.second.live && i.second.kind == cudaMemoryTypeDevice &&
            device_arena.holds(i.second.start))
            mprotect(const_cast<char*>(i.first), i.second.span,
                     close ? PROT_NONE : PROT_READ | PROT_WRITE);
    closed = close;
}
static double start_time = seconds(), spent = 0;
static void close_if_idle() {
    if (users || closed || checking || leave_device_open)
        return;
    double now = seconds();
    if (spent > 0.002 + 0.01 * (now - start_time))
        return;
    set_protection(true);
    spent += seconds() - now;
}
void open_device() {
    Guard g(lock);
    ++users;
    if (device_count() > 1)
        return protect_by_device();
    if (!closed)
        return;
    double now = seconds();
    set_protection(false);
    spent += seconds() - now;
}
void close_device() {
    Guard g(lock);
    --users;
    if (device_count() > 1)
        return protect_by_device();
    close_if_idle();
}
void open_for_kernel(int device) {
    if (device_count() == 1)
        return open_device();
    Guard g(lock);
    ++kernels_of[device];
    protect_by_device();
}
void close_after_kernel(int device) {
    if (device_count() == 1)
        return close_device();
    Guard g(lock);
    --kernels_of[device];
    protect_by_device();
}
void peers_changed() {
    Guard g(lock);
    protect_by_device();
}
struct Open {  // device memory is open for the life of this
    Open() {
        open_device();
    }
    ~Open() {
        close_device();
    }
};

cudaError_t allocate(void** p, size_t bytes, int kind, Site at) {
    if (cudaError_t e = wait_for_device())
        return e;
    if (!p)
        return fail(cudaErrorInvalidValue);
    if (bytes == 0) {
        *p = nullptr;
        return cudaSuccess;
    }
    Guard g(lock);
    Arena& arena = kind == cudaMemoryTypeDevice ? device_arena : host_arena;
    size_t used = (bytes + 255) / 256 * 256, span = (used + page - 1) / page * page;
    if (bytes > total_memory() || live_bytes + bytes > total_memory() || !arena.reserve() ||
        arena.next + span + page > arena.end)
        return fail(cudaErrorMemoryAllocation);
    char* start = arena.next;
    arena.next += span + page;
    if (mprotect(start, span, PROT_READ | PROT_WRITE) != 0)
        return fail(cudaErrorMemoryAllocation);
    char* result = start + span - used;
    for (char* c = result + bytes; c < result + used; ++c)
        *c = char(canary);
    allocations()[start] = {result,  bytes, span,    cudaMemoryType(kind), at,
                            {"", 0}, true,  nullptr, this_device()};
    live_bytes += bytes;
    ++live_count;
    *p = result;
    if (device_count() > 1)
        protect_by_device();
    else if (kind == cudaMemoryTypeDevice && closed)
        mprotect(start, span, PROT_NONE);
    else
        close_if_idle();
    return cudaSuccess;
}

static void check_canary(Allocation& a, const char* kernel, Site at) {
    const unsigned char* end =
        reinterpret_cast<unsigned char*>(a.start + (a.bytes + 255) / 256 * 256);
    for (const unsigned char* c = reinterpret_cast<unsigned char*>(a.start) + a.bytes; c < end; ++c)
        if (*c != canary) {
            size_t past = size_t(reinterpret_cast<const char*>(c) - a.start) - a.bytes;
            report(
                "out-of-bounds", at,
                "%s%s%s wrote past the end of the %zu bytes from cudaMalloc in line %d (%zu bytes "
                "behind "
                "the end): is the guard `if (i < n)` missing? Run with --check to see which thread",
                kernel ? "kernel `" : "something", kernel ? kernel : "", kernel ? "`" : "", a.bytes,
                a.at.line, past);
            while (c < end)
                const_cast<unsigned char&>(*c++) = canary;
            return;
        }
}
void check_canaries(const char* kernel, Site at) {
    Guard g(lock);
    if (live_count > 256)
        return;
    std::unique_ptr<Open> all(device_count() > 1 ? new Open : nullptr);
    for (auto& i : allocations())
        if (i.second.live)
            check_canary(i.second, kernel, at);
}

cudaError_t release(void* p, Site at) {
    if (cudaError_t e = wait_for_device())
        return e;
    if (!p)
        return cudaSuccess;
    order_host_behind_device(-1);  // cudaFree waits for all work
    Guard g(lock);
    Allocation* a = find_allocation(p);
    if (!a || a->start != p) {
        if (a)
            report("bad-free", at, "this frees %s, which is not the pointer that cudaMalloc gave",
                   describe(p, 1).c_str());
        else
            report("bad-free", at,
                   "this frees a pointer that did not come from cudaMalloc (memory of malloc or "
                   "new is freed with "
                   "free or delete)");
        return fail(cudaErrorInvalidValue);
    }
    if (!a->live) {
        report("double-free", at,
               "memory from cudaMalloc in line %d is freed a second time; the first time was in "
               "line %d",
               a->at.line, a->freed_at.line);
        return fail(cudaErrorInvalidValue);
    }
    Open open;
    check_canary(*a, nullptr, at);
    a->live = false;
    a->freed_at = at;
    live_bytes -= a->bytes;
    --live_count;
    char* start = a->start + (a->bytes + 255) / 256 * 256 - a->span;
    // New pages that nobody may touch: the old ones go back to the system.
    mmap(start, a->span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    auto& m = allocations();
    if (m.size() > live_count + 20000) {  // forget the oldest freed ones
        for (auto i = m.begin(); i != m.end() && m.size() > live_count + 10000;)
            i = i->second.live ? std::next(i) : m.erase(i);
    }
    return cudaSuccess;
}

static std::string of_device(const Allocation& a) {
    return device_count() > 1 ? " of device " + std::to_string(a.device) : "";
}
std::string describe(const void* p, size_t) {
    Allocation* a = in_arena(p) ? find_allocation(p) : find_python_buffer(p);
    char text[300];
    if (!a)
        return "memory of the host";
    const char* what = a->name                            ? a->name
                       : a->kind == cudaMemoryTypeManaged ? "cudaMallocManaged"
                       : a->kind == cudaMemoryTypeHost    ? "cudaMallocHost"
                                                          : "cudaMalloc";
    const char* c = static_cast<const char*>(p);
    char where[80];
    if (c < a->start)
        snprintf(where, sizeof where, "%zu bytes before", size_t(a->start - c));
    else if (c >= a->start + a->bytes)
        snprintf(where, sizeof where, "%zu bytes past the end of", size_t(c - a->start) - a->bytes);
    else
        snprintf(where, sizeof where, "byte %zu of", size_t(c - a->start));
    if (a->name)
        snprintf(text, sizeof text, "%s the %zu bytes of argument `%s`", where, a->bytes, a->name);
    else
        snprintf(text, sizeof text, "%s the %zu bytes from %s in line %d%s%s", where, a->bytes,
                 what, a->at.line, of_device(*a).c_str(),
                 a->live ? "" : ", which are already freed");
    return text;
}

// ---- whose memory is it?
#ifdef __APPLE__
static bool is_static(const void* p) {
    unsigned long n = 0;
    for (const char* s : {"__DATA", "__TEXT", "__DATA_CONST"})
        if (const uint8_t* d =
                getsegmentdata((const struct mach_header_64*)_dyld_get_image_header(0), s, &n))
            if (p >= d && p < d + n)
                return true;
    return false;
}
#else
static bool is_static(const void* p) {
    return dl_iterate_phdr(
               [](dl_phdr_info* info, size_t, void* q) {
                   for (int i = 0; i < info->dlpi_phnum; ++i) {
                       const auto& h = info->dlpi_phdr[i];
                       const char* start =
                           reinterpret_cast<const char*>(info->dlpi_addr + h.p_vaddr);
                       if (h.p_type == PT_LOAD && q >= start && q < start + h.p_memsz)
                           return 1;
                   }
                   return 0;
               },
               const_cast<void*>(p)) == 1;
}
#endif
bool is_registered(const void* p) {
    auto& m = registered();
    auto i = m.upper_bound(static_cast<const char*>(p));
    return i != m.begin() && p < std::prev(i)->first + std::prev(i)->second;
}

bool check_launch_arguments(const Kernel& k, const PointerArg* args, int n, Site at) {
    for (int i = 0; i < n; ++i) {
        const void* p = args[i].value;
        if (size_t(p) < 65536 || is_static(p))
            continue;
        Guard g(lock);
        if (in_arena(p)) {
            Allocation* a = find_allocation(p);
            if (a && !a->live && p >= a->start && p < a->start + a->bytes) {
                report("use-after-free", at,
                       "argument `%s` of kernel `%s` points to memory that cudaFree in line %d has "
                       "freed "
                       "(it came from cudaMalloc in line %d)",
                       args[i].name, k.name, a->freed_at.line, a->at.line);
                set_sticky(cudaErrorIllegalAddress);
                return false;
            }
            continue;
        }
        if (is_registered(p))
            continue;
        report("host-pointer-in-kernel", at,
               "argument `%s` of kernel `%s` is a pointer to host memory; a kernel needs memory "
               "from cudaMalloc (copy the data there with cudaMemcpy) or cudaMallocManaged",
               args[i].name, k.name);
        set_sticky(cudaErrorIllegalAddress);
        return false;
    }
    return true;
}

// ---- copies
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
    return device_arena.holds(p);
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
            memset(p, value, bytes);
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

void report_leaks() {
    Guard g(lock);
    size_t n = 0, bytes = 0;
    Site first = {"", 0};
    for (auto& i : allocations())
        if (i.second.live) {
            if (!n)
                first = i.second.at;
            ++n;
            bytes += i.second.bytes;
        }
    if (n)
        note(first, "%zu bytes in %zu allocation%s were never freed with cudaFree [leak]", bytes, n,
             n == 1 ? "" : "s");
}
void release_all() {
    Guard g(lock);
    for (auto& i : allocations()) {
        if (!i.second.live || i.second.device != this_device())
            continue;
        i.second.live = false;
        live_bytes -= i.second.bytes;
        --live_count;
        mmap(const_cast<char*>(i.first), i.second.span, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
}

// Memory of Python: it has no pages of its own, so it is kept apart from the arenas'.
static std::vector<Allocation> python_buffers;
void add_python_buffer(void* p, size_t bytes, const char* name) {
    python_buffers.push_back(
        {static_cast<char*>(p), bytes, bytes, cudaMemoryTypeManaged, {"", 0}, {"", 0}, true, name});
}
void forget_python_buffers() {
    python_buffers.clear();
}
// The buffer that holds p, or else the one that p is next to.
Allocation* find_python_buffer(const void* p) {
    const char* c = static_cast<const char*>(p);
    Allocation* nearest = nullptr;
    size_t best = 65536;
    for (Allocation& a : python_buffers) {
        size_t away = c < a.start              ? size_t(a.start - c)
                      : c >= a.start + a.bytes ? size_t(c - a.start) - a.bytes + 1
                                               : 0;
        if (away == 0)
            return &a;
        if (away < best) {
            best = away;
            nearest = &a;
        }
    }
    return nearest;
}

}  // namespace cuda_cpu

using namespace cuda_cpu;

cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned) {
    if (!p || !bytes)
        return fail(cudaErrorInvalidValue);
    Guard g(cuda_cpu::lock);
    if (registered().count(static_cast<char*>(p)))
        return fail(cudaErrorHostMemoryAlreadyRegistered);
    registered()[static_cast<char*>(p)] = bytes;
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* p) {
    Guard g(cuda_cpu::lock);
    return registered().erase(static_cast<char*>(p)) ? cudaSuccess
                                                     : fail(cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaHostGetFlags(unsigned* flags, void*) {
    *flags = cudaHostAllocMapped;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    *total = total_memory();
    *free = total_memory() - live_bytes;
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
    Allocation* found = in_arena(p) ? find_allocation(p) : nullptr;
    void* q = const_cast<void*>(p);
    if (found && found->live)
        *a = {found->kind, found->device, q, found->kind == cudaMemoryTypeDevice ? nullptr : q};
    else if (is_registered(p))
        *a = {cudaMemoryTypeHost, 0, q, q};
    else
        *a = {cudaMemoryTypeUnregistered, -2, nullptr, q};
    return cudaSuccess;
}
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) {
    return sticky_error();
}
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
    return sticky_error();
}
cudaError_t cudaMemPrefetchAsync(const void* p, size_t, int, cudaStream_t) {
    if (cudaError_t e = sticky_error())
        return e;
    Allocation* a = in_arena(p) ? find_allocation(p) : nullptr;
    return a && a->kind == cudaMemoryTypeManaged ? cudaSuccess
           : a                                   ? fail(cudaErrorInvalidValue)
                                                 : cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void* p, size_t n, cudaMemLocation, unsigned,
                                 cudaStream_t s) {
    return cudaMemPrefetchAsync(p, n, 0, s);
}
namespace cuda_cpu {
struct Pool {};
}  // namespace cuda_cpu
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* p, int) {
    static Pool pool;
    *p = &pool;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* p, int d) {
    return cudaDeviceGetDefaultMemPool(p, d);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
    *static_cast<unsigned long long*>(value) = live_bytes;
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
    return cudaSuccess;
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
    return cudaMemcpy3DAsync(p, nullptr);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t s) {
    cudaMemcpy3DParms q = *p;
    if (q.srcArray || q.dstArray)
        return fail(cudaErrorNotSupported);
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
    return cudaMemset2DAsync(p.ptr, p.pitch, value, e.width, e.height * e.depth, nullptr);
}
