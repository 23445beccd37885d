// What threads of a launch do to the same memory: races between them, and reads of shared memory
// that the block has not written. Every access is held against the last ones to the same four
// bytes. Everything runs on one core here, so none of this needs a lock.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include "checks.h"

namespace cuda_cpu {
bool in_stack(const void* p, const Fiber* f);

unsigned clock_now = 1;
static unsigned this_grid = 0, last_grid_sync = 0;
struct Fence {
    unsigned when, generation, meetings;
    unsigned short tid;
    bool for_all_blocks;
};
static std::unordered_map<unsigned long long, std::vector<Fence>>& fences() {  // by block, in order
    static auto* m = new std::unordered_map<unsigned long long, std::vector<Fence>>;
    return *m;
}
// A block hears of others' fences where it reads what was changed after them. Its own plain reads
// come after those only behind a fence of its own (PTX: an acquire pattern): then it has learnt.
static std::unordered_map<unsigned long long, unsigned>& heard() {  // block -> the last fence
    static auto* m = new std::unordered_map<unsigned long long, unsigned>;
    return *m;
}
static std::unordered_map<unsigned long long, unsigned>& learnt() {
    static auto* m = new std::unordered_map<unsigned long long, unsigned>;
    return *m;
}
static unsigned fence_of(const std::unordered_map<unsigned long long, unsigned>& known,
                         unsigned long long block) {
    auto found = known.find(block);
    return found == known.end() ? 0 : found->second;
}
static std::unordered_map<const char*, unsigned>&
released() {  // where something was changed -> the last fence before, of which it tells
    static auto* m = new std::unordered_map<const char*, unsigned>;
    return *m;
}
// Within a block a fence orders two threads only if something was changed after it, atomically or by
// a volatile access, and the block has seen that in another thread: a flag, a counter.
struct Sign {
    unsigned long long block;
    unsigned fence;  // the last one before
    unsigned short tid;
};
static std::unordered_map<const char*, Sign>& signs() {  // by where they were set
    static auto* m = new std::unordered_map<const char*, Sign>;
    return *m;
}
static std::unordered_map<unsigned long long, unsigned>& handed_over() {  // block -> the last fence
    static auto* m = new std::unordered_map<unsigned long long, unsigned>;
    return *m;
}
static unsigned seen_generation = 0;
bool any_fences = false, anything_pending = false;

void checks_begin_grid(Grid&) {
    this_grid = next_grid();
    counts_begin_grid();
    messages_begin_grid();
    fences().clear();
    any_fences = false;
    heard().clear();
    learnt().clear();
    released().clear();
    signs().clear();
    handed_over().clear();
    seen_generation = 0;
}
void checks_begin_block(Block& b) {
    b.check_grid = this_grid;
}
unsigned meetings_of(const Block& b, unsigned tid) {
    return hot.tracking ? b.warps[tid >> 5].syncs : 0;
}
void checks_fence(int scope) {
    if (!in_kernel())
        return;
    record_fence();
    if (scope > 1)
        order_fence();
    Block& b = *hot.block;
    any_fences = true;
    fences()[b.linear].push_back(
        {++clock_now, b.generation, meetings_of(b, hot.tid), (unsigned short)hot.tid, scope > 0});
    if (scope > 0)
        learnt()[b.linear] = fence_of(heard(), b.linear);
}
static bool meets(const Fence& f, unsigned tid, unsigned generation, unsigned meetings) {
    return f.tid == tid || f.generation != generation ||
           (f.tid >> 5 == tid >> 5 && f.meetings != meetings);
}
// When a fence published an access to its block or to all; 0: none has.
static unsigned published(const Access& a, bool to_all) {
    auto block = fences().find(a.block);
    if (block == fences().end())
        return 0;
    auto& list = block->second;
    auto later = std::upper_bound(list.begin(), list.end(), a.when,
                                  [](unsigned when, const Fence& f) { return when < f.when; });
    for (; later != list.end(); ++later)
        if ((later->for_all_blocks || !to_all) && meets(*later, a.tid, a.generation, a.meetings))
            return later->when;
    return 0;
}
// The last fence of its block that what this thread changes now will tell of.
static unsigned own_fence(const Block& b, unsigned tid, bool for_all_blocks) {
    auto block = fences().find(b.linear);
    if (block == fences().end())
        return 0;
    unsigned meetings = meetings_of(b, tid);
    for (auto f = block->second.rbegin(); f != block->second.rend(); ++f)
        if ((f->for_all_blocks || !for_all_blocks) && meets(*f, tid, b.generation, meetings))
            return f->when;
    return 0;
}
static unsigned last_fence(const Block& b, unsigned tid) {  // the same for other blocks
    return std::max(fence_of(learnt(), b.linear), own_fence(b, tid, true));
}

static std::unordered_set<size_t>& said() {
    static auto* s = new std::unordered_set<size_t>;
    return *s;
}
bool said_before(const void* code, int kind) {
    return !said().insert(size_t(code) * 8 + size_t(kind)).second;
}
void forget_said() {
    said().clear();
}
bool was_said(const void* code, int kind) {
    return said().count(size_t(code) * 8 + size_t(kind));
}

bool ordered_by_fence(const Access& a, const Block& b, bool needs_fence) {
    unsigned fenced = published(a, true);
    return fenced && fence_of(needs_fence ? learnt() : heard(), b.linear) >= fenced;
}
bool ordered(const Access& a, const Block& b, bool shared, bool needs_fence) {
    if (a.bytes == 0 || a.grid != b.check_grid || a.when < last_grid_sync)
        return true;
    bool other_block = a.block != unsigned(b.linear);
    if (shared && other_block)
        return ordered_in_cluster(a, b) || ordered_by_fence(a, b, needs_fence);
    if (other_block)
        return published(a, true) && ordered_by_fence(a, b, needs_fence);
    if (a.tid == hot.tid || a.generation != b.generation)
        return true;
    if (b.async_ready && knows(b, a))
        return true;
    if (a.tid >> 5 == hot.tid >> 5 && a.meetings != meetings_of(b, a.tid))
        return true;
    unsigned fenced = published(a, false);
    return fenced && fence_of(handed_over(), b.linear) >= fenced;
}

// The same within the block.
static void hand_over(const Use& use, const Block& b) {
    Sign& sign = signs()[use.p];
    if (sign.fence && sign.block == b.linear && sign.tid != hot.tid) {
        unsigned& last = handed_over()[b.linear];
        last = std::max(last, sign.fence);
    }
    if (use.writes && !use.looks)
        sign = {b.linear, own_fence(b, hot.tid, false), (unsigned short)hot.tid};
}

// An access learns of the fences before what it finds, and a change tells of those before it. Not
// only in allocations: a counter or a flag may be a __device__ variable.
void learn_and_tell(const Use& use) {
    if (!in_kernel() || fences().empty() || (hot.fiber && in_stack(use.p, hot.fiber)))
        return;
    Block& b = *hot.block;
    if (use.atomic)
        hand_over(use, b);
    unsigned& told = released()[use.p];
    if ((use.atomic || !use.writes) && told) {
        unsigned& last = heard()[b.linear];
        last = std::max(last, told);
    }
    if (use.writes) {
        unsigned mine = last_fence(b, hot.tid);
        told = use.atomic ? std::max(told, mine) : mine;
    }
}

const char* index_of(const Grid& g, unsigned tid) {
    static char text[64];
    snprintf(text, sizeof text, "(%u,%u,%u)", tid % g.block.x, tid / g.block.x % g.block.y,
             tid / g.block.x / g.block.y);
    return text;
}

// What would put an access of another block before one of this block.
static const char* cure_between_blocks(const Access& a, const Block& b) {
    unsigned fenced = published(a, true);
    if (!fenced && counts.atomics)
        return "Blocks run in any order. Where a counter or a flag says that the other one is "
               "done, a __threadfence() must stand between its access and that, and before the "
               "fence a __syncthreads(), if another thread of its block counts or sets the flag";
    if (!fenced)
        return "Blocks run in any order: use atomic operations, or two kernels";
    if (fence_of(heard(), b.linear) < fenced)
        return "The other one has a fence behind it, or a release, but this block has seen nothing "
               "that was counted or set after that. (Where another thread of its block counts or "
               "sets the flag, a fence alone does not do: a __syncthreads() must stand before)";
    return "This block has seen what the other one counted or set, but may still read what was "
           "there before: a __threadfence() must stand between. Does what it has seen decide that "
           "it goes on? If not, another order of the blocks breaks it";
}

// And within a block.
static const char* cure_in_block(const Access& a) {
    if (published(a, false))
        return "The other one has a fence behind it, but a fence only orders what one thread does: "
               "nobody waits for it. A __syncthreads() must stand between the two";
    return "A __syncthreads() between the two, or an atomic operation, makes it right";
}

static void report_race(const Access& a, bool a_writes, bool writes, bool shared,
                        const void* code) {
    if (said_before(a.code, 1) | said_before(code, 2))
        return;
    Block& b = *hot.block;
    Site first = site_of(a.code);
    std::string file = first.file;
    int line = first.line;
    Site at = site_of(code);
    char who[160];
    bool same_block = a.block == unsigned(b.linear);
    if (same_block)
        snprintf(who, sizeof who, "thread %s of the same block", index_of(*b.grid, a.tid));
    else
        snprintf(who, sizeof who, "block %u, thread %s", a.block, index_of(*b.grid, a.tid));
    report("data-race", at,
           "two threads use the same %s memory without a barrier between: this one %s it, and %s "
           "%s it in "
           "line %d. %s",
           shared ? "shared" : "global", writes ? "writes" : "reads", who,
           a_writes ? "writes" : "reads", line,
           same_block ? cure_in_block(a)
           : shared   ? "Blocks of a cluster wait for each other at cluster.sync() "
                        "(barrier.cluster.arrive and .wait)"
                      : cure_between_blocks(a, b));
}

// Two threads that store the same value disturb nobody (many that all store `true`): whether a
// second write changes anything is known at the next access only.
static struct Pending {
    const char* p = nullptr;
    unsigned size = 0;
    char before[16];
    Access other;
    bool shared;
    const void* code;
} pending_write;

// A thread stores something: is it made of what a shuffle gave from a lane that takes no part? That
// is known at the next access only, by the value: a NaN of all ones, or an integer near a multiple
// of the one that such a shuffle gives. `before`: an atomic operation may have added it.
static struct AbsentStore {
    const char* p = nullptr;
    unsigned size = 0;
    unsigned long long before;
    AbsentLane read;
    const void* code;
    uint3 thread;
} absent_store;

// Reads of shared memory that nobody had written then. When somebody writes it later without a
// barrier between, it is a race; when nobody ever does, it is told at the end of the block.
struct Unwritten {
    const void* code;
    Cell* cell;
    uint3 thread, block;
};
static std::vector<Unwritten>& unwritten() {
    static auto* v = new std::vector<Unwritten>;
    return *v;
}
// A plain read beside an atomic operation of another thread: right if the reader goes on with an
// atomic operation there.
struct Maybe {
    Access other;
    const void* code;
    Cell* cell;
    unsigned tid;
    bool shared;
};
static std::vector<Maybe>& maybe() {
    static auto* v = new std::vector<Maybe>;
    return *v;
}
static void maybe_read(const Access& read, bool shared, const void* code, Cell* cell) {
    if (read.atomic || maybe().size() >= 100 || read.tid == hot.tid)
        return;
    Access atomic = {
        read.grid, unsigned(hot.block->linear), 0, 0, 0, (unsigned short)hot.tid, 1, true, code};
    maybe().push_back({atomic, read.code, cell, read.tid, shared});
}
void checks_end_block(Block& b) {
    counts.barriers += b.generation;
    for (const WarpState& w : b.warps) {
        counts.meetings += w.syncs;
        counts.shuffles += w.shuffles;
        counts.products += w.products;
    }
    settle_pending();
    settle_absent();
    for (Maybe& m : maybe()) {
        hot.tid = m.tid;
        threadIdx = {m.tid % blockDim.x, m.tid / blockDim.x % blockDim.y,
                     m.tid / blockDim.x / blockDim.y};
        if (m.cell->read[0].tid == m.tid || m.cell->read[1].tid == m.tid)
            report_race(m.other, true, false, m.shared, m.code);
    }
    maybe().clear();
    messages_end_block();
    for (Unwritten& u : unwritten()) {
        if (was_said(u.code, 1) || was_said(u.code, 2) || said_before(u.code, 3))
            continue;
        blockIdx = u.block;
        threadIdx = u.thread;
        report("uninitialised-shared", site_of(u.code),
               "this reads shared memory that no thread of the block has written; it does "
               "not start at zero");
    }
    unwritten().clear();
}

void settle_pending() {
    Pending& w = pending_write;
    if (!w.p)
        return;
    const char* p = w.p;
    w.p = nullptr;
    anything_pending = absent_store.p;
    if (memcmp(p, w.before, w.size) && hot.block)
        report_race(w.other, true, true, w.shared, w.code);
}

static unsigned long long held(const char* p, unsigned size) {
    unsigned long long value = 0;
    memcpy(&value, p, size);
    return value;
}
static bool made_of_absent(unsigned long long value, const AbsentLane& read, unsigned size) {
    const unsigned long long all = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
    if (read.floating)
        return value == all;
    if (read.bytes < 4 || size < 4)
        return false;
    const long long near = size == 8 ? 1ll << 32 : 1 << 16;
    for (unsigned long long times = 1; times <= 8; ++times)
        for (unsigned long long sum : {value, 0 - value}) {
            unsigned long long rest = (sum - times * absent_integer) & all;
            if (rest < (unsigned long long)near || all - rest < (unsigned long long)near)
                return true;
        }
    return false;
}
void settle_absent() {
    AbsentStore& s = absent_store;
    if (!s.p)
        return;
    unsigned long long now = held(s.p, s.size);
    bool stored =
        now != s.before && (made_of_absent(now, s.read, s.size) ||
                            (!s.read.floating && made_of_absent(now - s.before, s.read, s.size)));
    s.p = nullptr;
    anything_pending = pending_write.p;
    if (!stored || said_before(s.code, 7))
        return;
    std::swap(threadIdx, s.thread);
    report(
        "absent-lane", site_of(s.code),
        "this stores what a shuffle in line %d took from lane %d, which takes no part in it: on a "
        "GPU that value is undefined. Its mask must name the lane, and the lane must come to it",
        s.read.at.line, s.read.lane);
    std::swap(threadIdx, s.thread);
}
void stores_absent(const Use& use) {
    if (hot.fiber && in_stack(use.p, hot.fiber))
        return;
    settle_absent();
    if (!use.writes || use.size > 8 || !in_kernel())
        return;
    const AbsentLane& read = absent_lane_read();
    anything_pending |= read.bytes != 0;
    if (read.bytes)
        absent_store = {use.p, use.size, held(use.p, use.size), read, use.code, threadIdx};
}

void remember(Cell& c, const Access& now, bool writes) {
    if (writes) {
        (now.atomic ? c.atomic : c.write) = now;
        return;
    }
    if (c.read[0].tid != now.tid || c.read[0].block != now.block || c.read[0].grid != now.grid)
        c.read[1] = c.read[0];
    c.read[0] = now;
}

// What the running thread does to a cell may be a race with each thing that is known of it.
static void races_of_write(const Cell& c, const Access& now, bool shared, const void* code) {
    for (const Access& r : c.read) {
        if (!(r.bytes & now.bytes) || ordered(r, *hot.block, shared))
            continue;
        if (now.atomic)
            maybe_read(r, shared, code, const_cast<Cell*>(&c));
        else
            report_race(r, false, true, shared, code);
    }
}
static void races_with_write(const Cell& c, const Access& now, const Use& use, bool shared) {
    if (!(c.write.bytes & now.bytes) || ordered(c.write, *hot.block, shared, !use.atomic))
        return;
    if (!use.writes || use.atomic)
        return report_race(c.write, true, use.writes, shared, use.code);
    pending_write = {use.p, use.size, {}, c.write, shared, use.code};
    anything_pending = true;
    memcpy(pending_write.before, use.p, use.size);
}
static void races_with_atomic(Cell& c, const Access& now, const Use& use, bool shared) {
    if (use.atomic || !(c.atomic.bytes & now.bytes) || ordered(c.atomic, *hot.block, shared))
        return;
    if (use.writes)
        report_race(c.atomic, true, true, shared, use.code);
    else if (maybe().size() < 100)  // the start of a compare-and-swap loop reads like this
        maybe().push_back({c.atomic, use.code, &c, hot.tid, shared});
}
// The thread goes on with an atomic operation where it has read: that place is such a loop.
static void forgive_loops(const Cell& c) {
    for (size_t i = maybe().size(); i-- > 0;)
        if (maybe()[i].cell == &c && maybe()[i].tid == hot.tid) {
            said_before(maybe()[i].code, 1);
            said_before(maybe()[i].code, 2);
            maybe().erase(maybe().begin() + long(i));
        }
}
static void note_shared(Cell& c, const Access& now, const Use& use, const Block& owner) {
    if (c.stored_grid != owner.check_grid || c.stored_block != unsigned(owner.linear)) {
        c.stored_grid = owner.check_grid;
        c.stored_block = unsigned(owner.linear);
        c.stored = 0;
    }
    bool fresh = (c.stored & now.bytes) != now.bytes;
    if ((!use.writes || use.atomic) && fresh && unwritten().size() < 100)
        unwritten().push_back({use.code, &c, threadIdx, blockIdx});
    if (use.writes)
        c.stored |= now.bytes;
}
static void note_global(const Cell& c, const Access& now, const Use& use, bool counted) {
    bool others = c.write.block != now.block || c.write.tid != now.tid;
    if (use.writes && !use.atomic && counted) {
        const unsigned before = c.write.grid == now.grid ? c.write.bytes : 0;
        counts.rewrites += others && (before & now.bytes);
        counts_stored_first(unsigned(__builtin_popcount(now.bytes & ~(others ? 0 : before))));
    }
    streams_cell(c, now, use.writes, {"", 0});
    if (use.atomic)
        message(c, now, use);
}
void history(Cell* cells, size_t offset, const Use& use, const Block* owner, bool counted) {
    Block& b = *hot.block;
    if (b.grid->generation.load() != seen_generation) {
        seen_generation = b.grid->generation.load();
        last_grid_sync = ++clock_now;
    }
    const bool shared = owner != nullptr;
    Access now = {b.check_grid,
                  unsigned(b.linear),
                  b.generation,
                  meetings_of(b, hot.tid),
                  clock_now,
                  (unsigned short)hot.tid,
                  0,
                  use.atomic,
                  use.code};
    over_cells(cells, offset, use.size, [&](Cell& c, unsigned char which) {
        now.bytes = which;
        if (shared)
            note_shared(c, now, use, *owner);
        else
            note_global(c, now, use, counted);
        races_with_write(c, now, use, shared);
        races_with_atomic(c, now, use, shared);
        if (use.atomic && !maybe().empty())
            forgive_loops(c);
        if (use.writes)
            races_of_write(c, now, shared, use.code);
        remember(c, now, use.writes);
    });
}
}  // namespace cuda_cpu
