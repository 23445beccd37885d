// What the slow checks know of each four bytes of memory: checks.cpp, checks_async.cpp.
#pragma once
#include <algorithm>
#include "asynchronous.h"

namespace cuda_cpu {
// One access. Two of them are ordered when they belong to different launches, when the block's
// barrier or a meeting of their warp lies between, or the grid's barrier, or a fence that publishes
// the first (by its own thread, or by one that it has met since), if the other block has learnt of
// that fence: by an atomic operation on what was changed behind it, or by reading that.
struct Access {
    unsigned grid, block, generation, meetings, when;
    unsigned short tid;
    unsigned char bytes;  // which of the four, as bits
    bool atomic;
    const void* code;
};
struct Cell {  // four bytes of memory
    Access write, atomic, read[2];
    unsigned stored_grid, stored_block;
    unsigned char stored;  // bytes that the block (shared memory) or anybody has written
};
Cell* cells_of(const char* start, size_t bytes);
// Before what the running thread does? needs_fence: only if it comes behind a fence of this block.
bool ordered(const Access& a, const Block& b, bool shared, bool needs_fence = false);
// By a fence behind it, of which the running block has learnt?
bool ordered_by_fence(const Access& a, const Block& b, bool needs_fence);
void remember(Cell& c, const Access& now, bool writes);
void access(const char* p, unsigned size, bool writes, bool atomic, const void* code);
bool is_global(const char* p);
unsigned meetings_of(const Block& b, unsigned tid);
bool said_before(const void* code, int kind);
bool was_said(const void* code, int kind);
const char* index_of(const Grid& g, unsigned tid);
extern unsigned clock_now;

// Calls f(cell, which of its bytes) for the cells of a range of an allocation.
template <class F>
void over_cells(Cell* cells, size_t offset, size_t bytes, F f) {
    for (size_t done = 0; done < bytes;) {
        unsigned from = (offset + done) % 4;
        unsigned n = unsigned(std::min<size_t>(4 - from, bytes - done));
        f(cells[(offset + done) / 4], (unsigned char)(((1u << n) - 1) << from));
        done += n;
    }
}

// ---- checks_races.cpp
// One use of memory by the running thread.
struct Use {
    const char* p;
    unsigned size;
    bool writes, atomic;
    bool update;  // reads and writes at once, no other access comes between
    bool looks;  // an update that changes nothing
    const void* code;
};
void settle_pending();
void settle_absent();
void stores_absent(const Use& use);
void learn_and_tell(const Use& use);
// In the shared memory of `owner`, or in global memory (null). counted: not of a device variable.
void history(Cell* cells, size_t offset, const Use& use, const Block* owner, bool counted = true);

// ---- checks_messages.cpp
void messages_begin_grid();
void messages_end_block();
void message(const Cell& c, const Access& now, const Use& use);

// ---- checks_quick.cpp
extern bool any_fences;  // of this launch
extern bool anything_pending;  // is a store's value or race to be looked at before the next access?
void quick_remembers(const Allocation& a);  // that the running launch has used it
bool comes_behind(unsigned grid);  // the running operation, behind that one's

// ---- checks_counts.cpp
struct Counts {
    unsigned long long busiest, total, shared, barriers, atomics, meetings, wide, global_bytes,
        rewrites, partial, shuffles, absent, heap, heap_line, wide_loads, sums, polls, stored,
        products, most_stored, lasting;
};
extern Counts counts;
// What a thread of the grid did.
struct OfThread {
    unsigned accesses = 0;
    unsigned long long stored = 0;  // bytes of global memory
    // Where it polls: of the reads of a loop that waits, the first one counts.
    const char* polled = nullptr;
    AbsentLane absent = {};  // the last one that a shuffle of its has read
    // Where its last access was, if it added nothing there.
    const volatile void* unchanged = nullptr;
    bool looks = false;  // its next atomic operation does
};
extern OfThread* first_thread;  // of those of the launch that have been seen
extern size_t thread_count;
OfThread& new_thread(size_t thread);
inline OfThread& this_thread() {
    size_t thread = hot.block->linear * hot.count + hot.tid;
    return thread < thread_count ? first_thread[thread] : new_thread(thread);
}
void counts_begin_grid();
const AbsentLane& absent_lane_read();  // by the running thread; bytes 0: none
bool only_looks();  // the running thread's atomic operation; asked once for each
// ---- device_heap.cpp, which programs lack
void heap_begin_grid();
void count_heap(Counts& counts);
void note_access(const Use& use, bool shared);
void counts_variable(const Use& use);  // of a device variable, perhaps
void counts_stored_first(unsigned bytes);  // of global memory, to which this thread had not stored

// ---- checks_record.cpp
void record_begin_grid();
void record_access(const Use& use, bool shared);
void record_fence();

// ---- checks_operations.cpp
unsigned next_grid();
void streams_cell(const Cell& c, const Access& now, bool writes, Site at);
void host_too_early(const Allocation& a, const Use& use);
void host_looks(const volatile void* flag, unsigned bytes);

// ---- checks_unwritten.cpp
void note_device_use(const Allocation& a, const Use& use);
void note_stored(const Allocation& a, const char* p, size_t bytes);
void settle_unwritten();
extern bool any_taken;  // has the host copied such memory?
void host_uses_taken(const Use& use);
// While a range is used in pieces: these need no alignment, and if anything in it was written that
// is enough.
struct Range {
    Range(const char* p, size_t bytes, bool writes);
    ~Range();
};
extern bool in_pieces;

// ---- checks_clusters.cpp
Block* cluster_owner(const Block& b, const char* p);  // of shared memory of another block, or null
bool ordered_in_cluster(const Access& a, const Block& b);
void peers_learn(Peers& to, const Peers& from);
Peers peers_told(const Block& b);  // what it and those know who have told it

// An access of the copy engine has this, and the number of the barrier that counted it in.
const unsigned engine_thread = 0x8000;
bool knows(const Block& b, const Access& a);  // by barriers in shared memory
const void* code_of(Site at);  // stands for a place in the program; site_of gives it back
}  // namespace cuda_cpu
