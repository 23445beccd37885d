// Linked into programs with the slow checks: remembers which memory host code has from `new` and
// `malloc`, because a kernel that uses it (through a pointer in a struct, say) would work here, and
// on a GPU it would not. The linker sends the program's calls of malloc and its like to the __wrap_
// functions (build.py); on macOS only `new` is known.
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include "internal.h"

namespace cuda_cpu {
static std::mutex lock;
static thread_local bool busy = false;  // the map's own memory is not remembered
static std::map<const char*, size_t>& host_memory() {
    static auto* m = new std::map<const char*, size_t>;
    return *m;
}
template <class F>
static void with_lock(F f) {
    if (busy)
        return;
    busy = true;
    {
        std::lock_guard<std::mutex> l(lock);
        f(host_memory());
    }
    busy = false;
}
static void* remember(void* p, size_t bytes) {
    forget_taken(static_cast<char*>(p), bytes);
    if (p)
        with_lock([=](auto& m) {
            if (in_kernel())
                m.erase(static_cast<char*>(p));  // the device's heap
            else
                m[static_cast<char*>(p)] = bytes;
        });
    return p;
}
static void forget(void* p) {
    if (p)
        with_lock([=](auto& m) { m.erase(static_cast<char*>(p)); });
}
size_t host_heap_bytes(const void* p) {
    size_t bytes = 0;
    with_lock([&](auto& m) {
        auto i = m.upper_bound(static_cast<const char*>(p));
        if (i != m.begin() && p < (--i)->first + i->second)
            bytes = i->second;
    });
    return bytes;
}
static void* allocate_or_throw(void* p, size_t bytes) {
    if (!p)
        throw std::bad_alloc();
    return remember(p, bytes);
}
}  // namespace cuda_cpu
using namespace cuda_cpu;

extern "C" {
#ifdef __APPLE__
#define __real_malloc malloc
#define __real_free free
#else
void* __real_malloc(size_t);
void* __real_calloc(size_t, size_t);
void* __real_realloc(void*, size_t);
void __real_free(void*);
void* __wrap_malloc(size_t bytes) {
    return remember(__real_malloc(bytes), bytes);
}
void* __wrap_calloc(size_t n, size_t bytes) {
    return remember(__real_calloc(n, bytes), n * bytes);
}
void* __wrap_realloc(void* p, size_t bytes) {
    forget(p);
    return remember(__real_realloc(p, bytes), bytes);
}
void __wrap_free(void* p) {
    forget(p);
    __real_free(p);
}
#endif
}

void* operator new(size_t bytes) {
    return allocate_or_throw(__real_malloc(bytes ? bytes : 1), bytes);
}
void* operator new(size_t bytes, std::align_val_t to) {
    void* p = nullptr;
    if (posix_memalign(&p, size_t(to), bytes ? bytes : 1))
        p = nullptr;
    return allocate_or_throw(p, bytes);
}
void operator delete(void* p) noexcept {
    forget(p);
    __real_free(p);
}
void operator delete(void* p, size_t) noexcept {
    operator delete(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
    operator delete(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
    operator delete(p);
}
