// Whose memory is it: of an allocation, of the program, of the host, of Python?
#include <algorithm>
#include <map>
#include <mutex>
#ifdef __APPLE__
#include <mach-o/getsect.h>
#include <mach-o/dyld.h>
#else
#include <link.h>
#endif
#include "internal.h"

namespace cuda_cpu {
static std::mutex registered_lock;
static std::map<const char*, size_t>& registered() {
    static auto* m = new std::map<const char*, size_t>;
    return *m;
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

#ifdef __APPLE__
static Segment segment_of(const void* p) {
    unsigned long n = 0;
    for (const char* s : {"__DATA", "__TEXT", "__DATA_CONST"})
        if (const uint8_t* d =
                getsegmentdata((const struct mach_header_64*)_dyld_get_image_header(0), s, &n))
            if (p >= d && p < d + n)
                return {reinterpret_cast<const char*>(d), n};
    return {};
}
#else
static Segment segment_of(const void* p) {
    Segment found = {static_cast<const char*>(p), 0};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* out) {
            Segment& wanted = *static_cast<Segment*>(out);
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& h = info->dlpi_phdr[i];
                const char* start = reinterpret_cast<const char*>(info->dlpi_addr + h.p_vaddr);
                if (h.p_type != PT_LOAD || wanted.start < start ||
                    wanted.start >= start + h.p_memsz)
                    continue;
                wanted = {start, h.p_memsz};
                return 1;
            }
            return 0;
        },
        &found);
    return found.bytes ? found : Segment();
}
#endif
bool is_static(const void* p) {
    return segment_of(p).bytes != 0;
}
Segment static_segment(const void* p) {
    static thread_local Segment last;
    if (!last.holds(p))
        last = segment_of(p);
    return last;
}
bool is_registered(const void* p) {
    std::lock_guard<std::mutex> g(registered_lock);
    auto& m = registered();
    auto i = m.upper_bound(static_cast<const char*>(p));
    return i != m.begin() && p < std::prev(i)->first + std::prev(i)->second;
}

bool check_launch_arguments(const Kernel& k, const PointerArg* args, int n, Site at) {
    for (int i = 0; i < n; ++i) {
        const void* p = args[i].value;
        if (size_t(p) < 65536 || is_static(p))
            continue;
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

// Memory of Python: it has no pages of its own, so it is kept apart from the arenas'.
static std::vector<Allocation> python_buffers;
void add_python_buffer(void* p, size_t bytes, const char* name) {
    python_buffers.push_back(
        {static_cast<char*>(p), bytes, bytes, cudaMemoryTypeManaged, {"", 0}, {"", 0}, true, name});
}
// Its place among the launch's buffers; all from the 63rd on share one.
unsigned python_buffer_number(const Allocation& a) {
    return unsigned(std::min<size_t>(63, size_t(&a - python_buffers.data())));
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
    std::lock_guard<std::mutex> g(registered_lock);
    if (registered().count(static_cast<char*>(p)))
        return fail(cudaErrorHostMemoryAlreadyRegistered);
    registered()[static_cast<char*>(p)] = bytes;
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* p) {
    std::lock_guard<std::mutex> g(registered_lock);
    return registered().erase(static_cast<char*>(p)) ? cudaSuccess
                                                     : fail(cudaErrorHostMemoryNotRegistered);
}
