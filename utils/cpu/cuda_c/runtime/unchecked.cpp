// In place of checks.cpp in the fast mode.
#include "internal.h"

namespace cuda_cpu {
bool checking = false;
void check_atomic(const volatile void*, unsigned, const void*) {}
void checks_begin_grid(Grid&) {}
void checks_begin_block(Block&) {}
void checks_end_block(Block&) {}
void checks_fence() {}
}  // namespace cuda_cpu
