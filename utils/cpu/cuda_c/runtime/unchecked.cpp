// In place of checks.cpp in the fast mode.
#include "asynchronous.h"

namespace cuda_cpu {
bool checking = false;
bool recording = false;
void check_atomic(const volatile void*, unsigned, const void*) {}
void host_looks(const volatile void*, unsigned) {}
void record_barrier(Site) {}
void record_met(unsigned, unsigned, bool, Site) {}
void checks_begin_grid(Grid&) {}
void checks_begin_block(Block&) {}
void checks_end_block(Block&) {}
void checks_fence(int) {}
void reads_absent_lane(AbsentLane) {}
void check_range(const void*, size_t, bool, Site) {}
void check_ownership(const void*, Site) {}
void checks_born(const Block&, MBarrier&) {}
void checks_uses_barrier(const Block&, const MBarrier&, Site, const char*) {}
void settle_unwritten() {}
void forget_said() {}
void checks_copied(const char*, const char*, size_t, Site) {}
void checks_overwrites(const volatile void*, size_t) {}
void counts_nothing_added(const volatile void*) {}
void counts_a_look() {}
void counts_sum() {}
void checks_cluster_arrives(Block&, unsigned) {}
void checks_cluster_waited(Block&, unsigned) {}
void checks_arrive(Block&, MBarrier&) {}
void checks_phase_over(MBarrier&) {}
void checks_waited(Block&, const MBarrier&) {}
void checks_meet(Block&, const unsigned*, unsigned) {}
void checks_lanes_met(Block&, unsigned, unsigned) {}
void checks_cluster_met(Block&) {}
void checks_proxy_fence() {}
void checks_copy_begins(Block&, const char*, size_t, Site) {}
void checks_copy_arrives(Block&, const char*, size_t, const MBarrier*, Site) {}
void record_flight(const Block&, const char*, size_t, Site, bool, unsigned) {}
void checks_box(Block&, const char*, size_t, unsigned, unsigned, Site) {}
void checks_engine_reads(const char*, size_t, Site, const char*) {}
void checks_global(const char*, size_t, bool, bool, Site) {}
void checks_store_read(const char*, size_t, Site) {}
void checks_tile_swizzle(Block&, const Product&) {}
void check_access(const char*, unsigned, bool, Site) {}
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
