// In place of checks.cpp in the fast mode.
#include "internal.h"

namespace cuda_cpu {
bool checking = false;
void check_atomic(const volatile void*, unsigned, const void*) {}
void checks_begin_grid(Grid&) {}
void checks_begin_block(Block&) {}
void checks_end_block(Block&) {}
void checks_fence(int) {}
void check_range(const void*, size_t, bool, Site) {}
}  // namespace cuda_cpu

#define COPY extern "C" __attribute__((visibility("default"))) void*
COPY cuda_cpu_memset(void* to, int value, size_t n) {
    return memset(to, value, n);
}
COPY cuda_cpu_memcpy(void* to, const void* from, size_t n) {
    return memcpy(to, from, n);
}
COPY cuda_cpu_memmove(void* to, const void* from, size_t n) {
    return memmove(to, from, n);
}
