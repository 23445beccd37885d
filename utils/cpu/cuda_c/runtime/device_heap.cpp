// Linked into libraries with the slow checks: which memory device code has from `new` and `malloc`,
// and has not given back. The learner's own calls of these come here (build.py renames them), so
// what the runtime itself takes while a kernel runs is not counted.
#include <stdlib.h>
#include <map>
#include <mutex>
#include <new>
#include "checks.h"

namespace cuda_cpu {
static std::mutex lock;
static std::map<void*, const void*>& blocks() {  // and where in the program each was taken
    static auto* m = new std::map<void*, const void*>;
    return *m;
}
void heap_begin_grid() {
    std::lock_guard<std::mutex> l(lock);
    blocks().clear();
}
void count_heap(Counts& counts) {
    std::lock_guard<std::mutex> l(lock);
    counts.heap = blocks().size();
    counts.heap_line = counts.heap ? site_of(blocks().begin()->second).line : 0;
}
static void* take(size_t bytes, const void* code) {
    void* p = malloc(bytes);
    if (p && in_kernel()) {
        std::lock_guard<std::mutex> l(lock);
        blocks()[p] = static_cast<const char*>(code) - 1;  // the call, not what follows it
    }
    return p;
}
static void* take_or_throw(size_t bytes, const void* code) {
    void* p = take(bytes ? bytes : 1, code);
    if (!p && !in_kernel())
        throw std::bad_alloc();
    return p;
}
static void give_back(void* p) {
    if (in_kernel()) {
        std::lock_guard<std::mutex> l(lock);
        blocks().erase(p);
    }
    free(p);
}

}  // namespace cuda_cpu
using namespace cuda_cpu;

#define CODE __builtin_return_address(0)
extern "C" {
void* cuda_cpu_heap_malloc(size_t bytes) {
    return take(bytes, CODE);
}
void cuda_cpu_heap_free(void* p) {
    give_back(p);
}
// new, new[], delete, delete[], and the last two with a size: their names as C++ mangles them
void* cuda_cpu_heap__Znwm(size_t bytes) {
    return take_or_throw(bytes, CODE);
}
void* cuda_cpu_heap__Znam(size_t bytes) {
    return take_or_throw(bytes, CODE);
}
void cuda_cpu_heap__ZdlPv(void* p) {
    give_back(p);
}
void cuda_cpu_heap__ZdaPv(void* p) {
    give_back(p);
}
void cuda_cpu_heap__ZdlPvm(void* p, size_t) {
    give_back(p);
}
void cuda_cpu_heap__ZdaPvm(void* p, size_t) {
    give_back(p);
}
}
