// What the last launch did, counted: for those who ask how, and not only what, a kernel computes.
#include <algorithm>
#include <map>
#include <utility>
#include "checks.h"

namespace cuda_cpu {
Counts counts;
__attribute__((weak)) void heap_begin_grid() {}
__attribute__((weak)) void count_heap(Counts&) {}
static std::vector<OfThread>& all_threads() {
    static auto* v = new std::vector<OfThread>;
    return *v;
}
OfThread* first_thread = nullptr;
size_t thread_count = 0;
OfThread& new_thread(size_t thread) {
    all_threads().resize(std::max(thread + 1, 2 * thread_count));
    first_thread = all_threads().data();
    thread_count = all_threads().size();
    return first_thread[thread];
}
static bool polls_again(OfThread& mine, const char* p, bool reads_atomically) {
    bool again = reads_atomically && mine.polled == p;
    mine.polled = reads_atomically ? p : nullptr;
    return again;
}
void note_access(const Use& use, bool shared) {
    OfThread& mine = this_thread();
    if (mine.unchanged != use.p)
        mine.unchanged = nullptr;
    if (polls_again(mine, use.p, use.atomic && !use.writes)) {
        ++counts.polls;
        return;
    }
    record_access(use, shared);
    ++counts.total;
    counts.atomics += use.atomic;
    counts.shared += shared;
    counts.wide += !shared && use.writes && use.size == 16;
    counts.wide_loads += !shared && !use.writes && use.size == 16;
    counts.global_bytes += shared ? 0 : use.size;
    unsigned long long accesses = ++mine.accesses;
    counts.busiest = std::max(counts.busiest, accesses);
}

void counts_stored_first(unsigned bytes) {
    OfThread& mine = this_thread();
    mine.stored += bytes;
    counts.most_stored = std::max(counts.most_stored, mine.stored);
}

// Device variables that kernels have stored to, of all launches: they last.
static std::map<const char*, unsigned>& lasting() {
    static auto* v = new std::map<const char*, unsigned>;
    return *v;
}
void counts_variable(const Use& use) {
    if (use.writes)
        lasting()[use.p] = use.size;
}
// Of what they hold, by FNV-1a.
static unsigned long long lasting_hash() {
    unsigned long long hash = 0;
    for (auto [p, bytes] : lasting())
        for (unsigned i = 0; i < bytes; ++i)
            hash = (hash ^ (unsigned char)p[i]) * 0x100000001b3 + 1;
    return hash;
}

void counts_begin_grid() {
    counts = {};
    barriers_without_all = 0;
    record_begin_grid();
    all_threads().clear();
    thread_count = 0;
    heap_begin_grid();
}
void reads_absent_lane(AbsentLane read) {
    ++counts.absent;
    this_thread().absent = read;
}
const AbsentLane& absent_lane_read() {
    return this_thread().absent;
}
void counts_nothing_added(const volatile void* address) {
    if (!in_kernel())
        return;
    OfThread& mine = this_thread();
    counts.polls += mine.unchanged == address;
    mine.unchanged = address;
}
void counts_a_look() {
    if (in_kernel())
        this_thread().looks = true;
}
bool only_looks() {
    return in_kernel() && std::exchange(this_thread().looks, false);
}
void counts_sum() {
    ++counts.sums;
}
}  // namespace cuda_cpu

// ---- what Python asks
extern "C" __attribute__((visibility("default"))) cuda_cpu::Counts cuda_cpu_counts() {
    cuda_cpu::counts.partial = cuda_cpu::barriers_without_all;
    cuda_cpu::counts.lasting = cuda_cpu::lasting_hash();
    cuda_cpu::count_heap(cuda_cpu::counts);
    return cuda_cpu::counts;
}
