// What the compiler calls where a program is built with --check: before every access to memory (for
// ThreadSanitizer, -fsanitize=thread), and where an index, an alignment or a division is wrong (for
// -fsanitize=bounds,alignment,integer-divide-by-zero). The sanitizers' libraries are not linked.
#include "checks.h"

using cuda_cpu::access;
#define HOOK extern "C" __attribute__((visibility("default"))) void
#define CODE __builtin_return_address(0)
#define ACCESSES(n)                                        \
    HOOK __tsan_read##n(char* p) {                         \
        access(p, n, false, false, CODE);                  \
    }                                                      \
    HOOK __tsan_write##n(char* p) {                        \
        access(p, n, true, false, CODE);                   \
    }                                                      \
    HOOK __tsan_unaligned_read##n(char* p) {               \
        access(p, n, false, false, CODE);                  \
    }                                                      \
    HOOK __tsan_unaligned_write##n(char* p) {              \
        access(p, n, true, false, CODE);                   \
    }                                                      \
    HOOK __tsan_volatile_read##n(char* p) {                \
        access(p, n, false, cuda_cpu::is_global(p), CODE); \
    }                                                      \
    HOOK __tsan_volatile_write##n(char* p) {               \
        access(p, n, true, cuda_cpu::is_global(p), CODE);  \
    }                                                      \
    HOOK __tsan_read_write##n(char* p) {                   \
        access(p, n, false, false, CODE);                  \
        access(p, n, true, false, CODE);                   \
    }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
static void range(const void* memory, size_t n, bool write, const void* code) {
    const char* p = static_cast<const char*>(memory);
    cuda_cpu::Range whole(p, n, write);
    for (size_t i = 0; i < n; i += 16)
        access(p + i, unsigned(n - i < 16 ? n - i : 16), write, false, code);
}
HOOK __tsan_read_range(char* p, size_t n) {
    range(p, n, false, CODE);
}
HOOK __tsan_write_range(char* p, size_t n) {
    range(p, n, true, CODE);
}
// The program calls these by the first name, clang++ by the second, for what it makes of structs.
#define COPIES(prefix)                                           \
    COPY prefix##memset(void* to, int value, size_t n) {         \
        range(to, n, true, CODE);                                \
        return memset(to, value, n);                             \
    }                                                            \
    COPY prefix##memcpy(void* to, const void* from, size_t n) {  \
        range(from, n, false, CODE);                             \
        range(to, n, true, CODE);                                \
        return memcpy(to, from, n);                              \
    }                                                            \
    COPY prefix##memmove(void* to, const void* from, size_t n) { \
        range(from, n, false, CODE);                             \
        range(to, n, true, CODE);                                \
        return memmove(to, from, n);                             \
    }
#define COPY extern "C" __attribute__((visibility("default"))) void*
COPIES(cuda_cpu_)
COPIES(__tsan_)
HOOK __tsan_init() {}
HOOK __tsan_func_entry(void*) {}
HOOK __tsan_func_exit() {}
HOOK __tsan_ignore_thread_begin() {}
HOOK __tsan_ignore_thread_end() {}
HOOK __tsan_vptr_read(void**) {}
HOOK __tsan_vptr_update(void**, void*) {}
HOOK __tsan_atomic_thread_fence(int) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
HOOK __tsan_atomic_signal_fence(int) {}

// std::atomic in the learner's code.
#define ATOMICS(bits, T)                                                                         \
    extern "C" T __tsan_atomic##bits##_load(const volatile T* p, int) {                          \
        cuda_cpu::host_looks(p, sizeof *p);                                                      \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                             \
    }                                                                                            \
    HOOK __tsan_atomic##bits##_store(volatile T* p, T v, int) {                                  \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                \
    }                                                                                            \
    extern "C" T __tsan_atomic##bits##_exchange(volatile T* p, T v, int) {                       \
        return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                      \
    }                                                                                            \
    extern "C" int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* e, T v, int,  \
                                                                 int) {                          \
        return __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
    }                                                                                            \
    extern "C" int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* e, T v, int,    \
                                                               int) {                            \
        return __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
    }                                                                                            \
    extern "C" T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T e, T v, int, int) { \
        __atomic_compare_exchange_n(p, &e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
        return e;                                                                                \
    }
#define ATOMIC_FETCH(bits, T, op)                                            \
    extern "C" T __tsan_atomic##bits##_fetch_##op(volatile T* p, T v, int) { \
        return __atomic_fetch_##op(p, v, __ATOMIC_SEQ_CST);                  \
    }
#define ATOMIC_TYPE(bits, T)   \
    ATOMICS(bits, T)           \
    ATOMIC_FETCH(bits, T, add) \
    ATOMIC_FETCH(bits, T, sub) \
    ATOMIC_FETCH(bits, T, and) \
    ATOMIC_FETCH(bits, T, or) ATOMIC_FETCH(bits, T, xor) ATOMIC_FETCH(bits, T, nand)
ATOMIC_TYPE(8, unsigned char)
ATOMIC_TYPE(16, unsigned short)
ATOMIC_TYPE(32, unsigned)
ATOMIC_TYPE(64, unsigned long long)

// ---- bounds of arrays whose size the compiler knows, alignment, division
struct UbLocation {
    const char* file;
    unsigned line, column;
};
struct UbType {
    unsigned short kind, info;
    char name[1];
};
struct UbBounds {
    UbLocation at;
    const UbType *array, *index;
};
struct UbMismatch {
    UbLocation at;
    const UbType* type;
    unsigned char log_alignment, check;
};
struct UbDivision {
    UbLocation at;
    const UbType* type;
};
HOOK __ubsan_handle_out_of_bounds(UbBounds* d, size_t index) {
    using namespace cuda_cpu;
    std::string type = d->array->name;
    report("out-of-bounds", {d->at.file, int(d->at.line)},
           "index %lld is outside of this array of type %s",
           (d->index->info & 1) && (d->index->info >> 1) == 5 ? (long long)(int)index
                                                              : (long long)index,
           type.c_str());
    if (in_kernel())
        abandon_grid(cudaErrorIllegalAddress);
}
HOOK __ubsan_handle_type_mismatch_v1(UbMismatch* d, size_t p) {
    using namespace cuda_cpu;
    if (!in_kernel() || !p)
        return;
    report("misaligned", {d->at.file, int(d->at.line)},
           "address %p is used as %s, which needs a multiple of %u", (void*)p, d->type->name,
           1u << d->log_alignment);
    abandon_grid(cudaErrorMisalignedAddress);
}
HOOK __ubsan_handle_divrem_overflow(UbDivision* d, size_t, size_t) {
    using namespace cuda_cpu;
    report("division-by-zero", {d->at.file, int(d->at.line)}, "an integer is divided by zero%s",
           in_kernel() ? " (a GPU goes on with a meaningless value)" : "");
    if (in_kernel())
        abandon_grid(cudaErrorLaunchFailure);
}
