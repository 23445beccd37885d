// Device, managed and pinned memory. Allocations end at a page that nobody may touch, freed
// addresses are not used again, and device memory is closed while host code runs: a stray access is
// a fault, which report.cpp explains.
#include <sys/mman.h>
#include <unistd.h>
#include <map>
#include <time.h>
#include "internal.h"

namespace cuda_cpu {
static const size_t page = 16384;
static const unsigned char canary = 0xCB;
static const size_t most_poisoned = size_t(1) << 26;  // bytes; touching more takes too long
// The system allows a process some 65,000 mappings: one for each allocation, one for the page behind.
static const size_t most_guarded = 16384;

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
// Of so many allocations new ones share a mapping with their neighbours: the page between two of
// them is open, and so is device memory, from now on.
static size_t opened_in_front() {
    if (live_count < most_guarded)
        return 0;
    if (closed)
        set_protection(false);
    leave_device_open = true;
    return page;
}
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
    size_t front = opened_in_front();
    if (mprotect(start - front, front + span, PROT_READ | PROT_WRITE) != 0)
        return fail(cudaErrorMemoryAllocation);
    char* result = start + span - used;
    if (kind == cudaMemoryTypeDevice)  // a forgotten cudaMemset must show: NaN, and -1
        memset(result, fresh_byte, bytes < most_poisoned ? bytes : most_poisoned);
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

// Who wrote past the end, and what to ask: of a library's work the call that the program made.
struct Writer {
    std::string name, question;
    Site at;
};
static Writer writer(const char* kernel, const Callers& callers, Site at) {
    if (callers.count) {
        const LibraryCall& call = library_call(callers);
        return {call.name, "do the sizes that it was told fit into that array?", call.at};
    }
    std::string name = kernel ? "kernel `" + std::string(kernel) + "`" : "something";
    return {name, "is the guard `if (i < n)` missing? Run with --check to see which thread", at};
}
static void check_canary(Allocation& a, const char* kernel, const Callers& callers, Site at) {
    const unsigned char* end =
        reinterpret_cast<unsigned char*>(a.start + (a.bytes + 255) / 256 * 256);
    for (const unsigned char* c = reinterpret_cast<unsigned char*>(a.start) + a.bytes; c < end; ++c)
        if (*c != canary) {
            size_t past = size_t(reinterpret_cast<const char*>(c) - a.start) - a.bytes;
            Writer who = writer(kernel, callers, at);
            report("out-of-bounds", who.at,
                   "%s wrote past the end of the %zu bytes from cudaMalloc in line %d (%zu bytes "
                   "behind the end): %s",
                   who.name.c_str(), a.bytes, a.at.line, past, who.question.c_str());
            while (c < end)
                const_cast<unsigned char&>(*c++) = canary;
            return;
        }
}
void check_canaries(const char* kernel, const Callers& callers, Site at) {
    Guard g(lock);
    if (live_count > 256)
        return;
    std::unique_ptr<Open> all(device_count() > 1 ? new Open : nullptr);
    for (auto& i : allocations())
        if (i.second.live)
            check_canary(i.second, kernel, callers, at);
}

cudaError_t release(void* p, Site at) {
    if (cudaError_t e = wait_for_device())
        return e;
    if (!p)
        return cudaSuccess;
    order_host_behind_device(-1);  // cudaFree waits for all work
    return give_back(p, at);
}
cudaError_t give_back(void* p, Site at) {
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
    if (!a->live && !a->freed_at.line) {
        report("double-free", at,
               "memory from cudaMalloc in line %d is freed, but cudaDeviceReset() has done so",
               a->at.line);
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
    check_canary(*a, nullptr, {}, at);
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

void report_leaks() {
    Guard g(lock);
    size_t n = 0, bytes = 0;
    Site first = {"", 0};
    for (auto& i : allocations())
        if (i.second.live && !i.second.of_graph) {
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

}  // namespace cuda_cpu

using namespace cuda_cpu;

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
