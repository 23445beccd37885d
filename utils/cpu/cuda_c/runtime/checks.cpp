// The slow checks. The compiler is told to instrument for ThreadSanitizer and for bounds
// (-fsanitize=thread,bounds), but the sanitizers' libraries are not linked: the functions that it
// calls before every access to memory are these. So each access is known with its size and its
// place in the program, and is held against
//   - the allocations and the block's shared variables: out of bounds, use after free, host and
//     device mixed up;
//   - what other threads did to the same four bytes since the last barrier: data races;
//   - what the block has written to its shared memory: reads of values that nobody has stored.
// Everything runs on one core here, so none of this needs a lock.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include "checks.h"

namespace cuda_cpu {
bool checking = true;
bool innermost_is_ours(const void* code);
bool inside_shared_variable(size_t offset, size_t bytes);
bool on_host_stack(const void* p);
bool in_stack(const void* p, const Fiber* f);
__attribute__((weak)) size_t host_heap_bytes(const void*) {
    return 0;
}  // in Python
void misaligned(const void* p, unsigned size, const void* code);

struct Shadow {
    const char* start;
    size_t bytes;
    Cell* cells;
};
static std::unordered_map<const char*, Shadow>& shadows() {
    static auto* m = new std::unordered_map<const char*, Shadow>;
    return *m;
}
Cell* cells_of(const char* start, size_t bytes) {
    static Shadow last = {};
    if (last.start == start && last.bytes == bytes)
        return last.cells;
    Shadow& s = shadows()[start];
    if (s.bytes != bytes) {
        size_t n = (bytes / 4 + 2) * sizeof(Cell);
        void* p = mmap(nullptr, n, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return nullptr;
        s = {start, bytes, static_cast<Cell*>(p)};
    }
    last = s;
    return s.cells;
}

unsigned clock_now = 1;
static unsigned grids = 0, last_grid_sync = 0;
struct Fence {
    unsigned when, generation, meetings;
    unsigned short tid;
    bool for_all_blocks;
};
static std::unordered_map<unsigned long long, std::vector<Fence>>& fences() {  // by block, in order
    static auto* m = new std::unordered_map<unsigned long long, std::vector<Fence>>;
    return *m;
}
static std::unordered_map<unsigned long long, unsigned>&
learnt() {  // block -> when it last learnt of others' fences
    static auto* m = new std::unordered_map<unsigned long long, unsigned>;
    return *m;
}
static std::unordered_map<const char*, unsigned>&
released() {  // where something was changed -> the last fence before, of which it tells
    static auto* m = new std::unordered_map<const char*, unsigned>;
    return *m;
}
static unsigned seen_generation = 0;

// Of each launch and each copy, the operation that it belongs to: see order.cpp.
static std::vector<unsigned>& operation_of() {
    static auto* v = new std::vector<unsigned>(1);
    return *v;
}
static unsigned next_grid() {
    operation_of().push_back(running_operation());
    return ++grids;
}

// What the last launch did, counted: for those who ask how, and not only what, a kernel computes.
struct Counts {
    unsigned long long busiest, total, shared, barriers, atomics, meetings, wide, global_bytes,
        rewrites;
};
static Counts counts;
static std::vector<unsigned>& accesses_of() {  // of each thread
    static auto* v = new std::vector<unsigned>;
    return *v;
}
static void note_access(unsigned size, bool writes, bool atomic, bool shared) {
    ++counts.total;
    counts.atomics += atomic;
    counts.shared += shared;
    counts.wide += !shared && writes && size == 16;
    counts.global_bytes += shared ? 0 : size;
    const dim3& block = hot.block->grid->block;
    size_t thread = hot.block->linear * block.x * block.y * block.z + hot.tid;
    if (thread >= accesses_of().size())
        accesses_of().resize(thread + 1);
    unsigned long long mine = ++accesses_of()[thread];
    counts.busiest = std::max(counts.busiest, mine);
}

void checks_begin_grid(Grid&) {
    next_grid();
    counts = {};
    accesses_of().clear();
    fences().clear();
    learnt().clear();
    released().clear();
    seen_generation = 0;
}
void checks_begin_block(Block& b) {
    b.check_grid = grids;
}
unsigned meetings_of(const Block& b, unsigned tid) {
    return hot.tracking ? b.warps[tid >> 5].syncs : 0;
}
void checks_fence(int scope) {
    if (!in_kernel())
        return;
    Block& b = *hot.block;
    fences()[b.linear].push_back(
        {++clock_now, b.generation, meetings_of(b, hot.tid), (unsigned short)hot.tid, scope > 0});
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
// The last fence, for all blocks, that what this thread changes now will tell of.
static unsigned last_fence(const Block& b, unsigned tid) {
    auto l = learnt().find(b.linear);
    unsigned when = l == learnt().end() ? 0 : l->second;
    auto block = fences().find(b.linear);
    if (block == fences().end())
        return when;
    unsigned meetings = meetings_of(b, tid);
    for (auto f = block->second.rbegin(); f != block->second.rend(); ++f)
        if (f->for_all_blocks && meets(*f, tid, b.generation, meetings))
            return std::max(when, f->when);
    return when;
}

static std::unordered_set<size_t>& said() {
    static auto* s = new std::unordered_set<size_t>;
    return *s;
}
bool said_before(const void* code, int kind) {
    return !said().insert(size_t(code) * 8 + size_t(kind)).second;
}
static bool was_said(const void* code, int kind) {
    return said().count(size_t(code) * 8 + size_t(kind));
}
static void settle_pending();

bool ordered(const Access& a, const Block& b, bool shared) {
    if (a.bytes == 0 || a.grid != b.check_grid || a.when < last_grid_sync)
        return true;
    unsigned block = unsigned(b.linear);
    if (shared && a.block != block)
        return true;
    if (unsigned fenced = published(a, a.block != block)) {
        if (a.block == block)
            return true;
        auto l = learnt().find(block);
        return l != learnt().end() && l->second >= fenced;
    }
    if (a.block != block)
        return false;
    if (a.tid == hot.tid || a.generation != b.generation)
        return true;
    if (b.async_ready && knows(b, a))
        return true;
    return a.tid >> 5 == hot.tid >> 5 && a.meetings != meetings_of(b, a.tid);
}

// An access learns of the fences before what it finds, and a change tells of those before it. Not
// only in allocations: a counter or a flag may be a __device__ variable.
static void learn_and_tell(const char* p, bool writes, bool atomic) {
    if (!in_kernel() || fences().empty() || (hot.fiber && in_stack(p, hot.fiber)))
        return;
    Block& b = *hot.block;
    unsigned& told = released()[p];
    if ((atomic || !writes) && told) {
        unsigned& l = learnt()[b.linear];
        l = std::max(l, told);
    }
    if (writes) {
        unsigned mine = last_fence(b, hot.tid);
        told = atomic ? std::max(told, mine) : mine;
    }
}

const char* index_of(const Grid& g, unsigned tid) {
    static char text[64];
    snprintf(text, sizeof text, "(%u,%u,%u)", tid % g.block.x, tid / g.block.x % g.block.y,
             tid / g.block.x / g.block.y);
    return text;
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
    if (a.block == unsigned(b.linear))
        snprintf(who, sizeof who, "thread %s of the same block", index_of(*b.grid, a.tid));
    else
        snprintf(who, sizeof who, "block %u, thread %s", a.block, index_of(*b.grid, a.tid));
    report("data-race", at,
           "two threads use the same %s memory without a barrier between: this one %s it, and %s "
           "%s it in "
           "line %d. %s",
           shared ? "shared" : "global", writes ? "writes" : "reads", who,
           a_writes ? "writes" : "reads", line,
           a.block == unsigned(b.linear)
               ? "A __syncthreads() between the two, or an atomic operation, makes it right"
               : "Blocks run in any order: use atomic operations, or two kernels");
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
    for (const WarpState& w : b.warps)
        counts.meetings += w.syncs;
    settle_pending();
    for (Maybe& m : maybe()) {
        hot.tid = m.tid;
        threadIdx = {m.tid % blockDim.x, m.tid / blockDim.x % blockDim.y,
                     m.tid / blockDim.x / blockDim.y};
        if (m.cell->read[0].tid == m.tid || m.cell->read[1].tid == m.tid)
            report_race(m.other, true, false, m.shared, m.code);
    }
    maybe().clear();
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

static void settle_pending() {
    Pending& w = pending_write;
    if (!w.p)
        return;
    const char* p = w.p;
    w.p = nullptr;
    if (memcmp(p, w.before, w.size) && hot.block)
        report_race(w.other, true, true, w.shared, w.code);
}

// ---- work of different streams, and of the host, on the same memory
static bool said_of_operations(unsigned a, unsigned b) {
    static auto* said = new std::unordered_set<std::string>;
    auto place = [](const Operation& o) { return o.what + std::to_string(o.at.line); };
    return !said->insert(place(operation(a)) + "|" + place(operation(b))).second;
}
static std::string told(const Operation& o) {
    std::string text = o.what.empty() ? "work" : o.what;
    text += " in line " + std::to_string(o.at.line);
    return device_count() > 1 ? text + " (device " + std::to_string(o.device) + ")" : text;
}
static void streams_race(const Access& a, bool a_writes, unsigned char bytes, bool writes, Site at,
                         const void* code) {
    if (!(a.bytes & bytes))
        return;
    unsigned other = operation_of()[a.grid];
    if (before_this(other) || said_of_operations(other, running_operation()))
        return;
    report("stream-race", code ? site_of(code) : at,
           "%s %s memory that %s %s, in another stream, and nothing makes the one wait for the "
           "other: record an event behind the first and let this stream wait for it "
           "(cudaEventRecord, cudaStreamWaitEvent), or synchronize between",
           told(operation(running_operation())).c_str(), writes ? "writes" : "reads",
           told(operation(other)).c_str(), a_writes ? "writes" : "reads");
}
static void streams_cell(const Cell& c, const Access& now, bool writes, Site at) {
    for (const Access* a : {&c.write, &c.atomic})
        if (a->grid != now.grid && !(now.atomic && a->atomic))
            streams_race(*a, true, now.bytes, writes, at, now.code);
    for (const Access& r : c.read)
        if (writes && r.grid != now.grid)
            streams_race(r, false, now.bytes, true, at, now.code);
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
// Calls f(cell, which of its bytes) for the cells of a range of an allocation.
template <class F>
static void each_cell(Cell* cells, size_t offset, size_t bytes, F f) {
    for (size_t done = 0; done < bytes;) {
        unsigned from = (offset + done) % 4;
        unsigned n = unsigned(std::min<size_t>(4 - from, bytes - done));
        f(cells[(offset + done) / 4], (unsigned char)(((1u << n) - 1) << from));
        done += n;
    }
}
// A copy or a collective reads or writes a range; called while its operation runs.
void check_range(const void* p, size_t bytes, bool writes, Site at) {
    Allocation* a = in_arena(p) ? find_allocation(p) : nullptr;
    if (!a || !a->live || in_kernel())
        return;
    Cell* cells = cells_of(a->start, a->bytes);
    if (!cells)
        return;
    Access now = {next_grid(), 0, 0, 0, clock_now, 0, 0, false, nullptr};
    each_cell(cells, size_t(static_cast<const char*>(p) - a->start), bytes,
              [&](Cell& c, unsigned char which) {
                  now.bytes = which;
                  streams_cell(c, now, writes, at);
                  remember(c, now, writes);
              });
}
// Host code uses memory that work may still be using.
static void host_too_early(const Allocation& a, const char* p, unsigned size, bool writes,
                           const void* code) {
    Cell* cells = cells_of(a.start, a.bytes);
    if (!cells || callback_running())
        return;
    each_cell(cells, size_t(p - a.start), size, [&](Cell& c, unsigned char which) {
        for (const Access* other : {&c.write, &c.atomic, &c.read[0], &c.read[1]}) {
            bool other_writes = other == &c.write || other == &c.atomic;
            unsigned number = operation_of()[other->grid];
            if (!(other->bytes & which) || !(writes || other_writes) || host_waited_for(number) ||
                said_before(code, 5))
                continue;
            report("too-early", site_of(code),
                   "host code %s memory that %s may still be %s: wait first, with "
                   "cudaStreamSynchronize, cudaEventSynchronize or cudaDeviceSynchronize%s",
                   writes ? "writes" : "reads", told(operation(number)).c_str(),
                   other_writes ? "writing" : "reading",
                   device_count() > 1 ? " of its device" : "");
        }
    });
}

static void history(Cell* cells, size_t offset, const char* p, unsigned size, bool writes,
                    bool atomic, bool shared, const void* code) {
    Block& b = *hot.block;
    if (b.grid->generation.load() != seen_generation) {
        seen_generation = b.grid->generation.load();
        last_grid_sync = ++clock_now;
    }
    Access now = {b.check_grid,
                  unsigned(b.linear),
                  b.generation,
                  meetings_of(b, hot.tid),
                  clock_now,
                  (unsigned short)hot.tid,
                  0,
                  atomic,
                  code};
    for (unsigned done = 0; done < size;) {
        Cell& c = cells[(offset + done) / 4];
        unsigned from = (offset + done) % 4, n = std::min(4 - from, size - done);
        now.bytes = (unsigned char)(((1u << n) - 1) << from);
        if (shared) {
            if (c.stored_grid != b.check_grid || c.stored_block != unsigned(b.linear)) {
                c.stored_grid = b.check_grid;
                c.stored_block = unsigned(b.linear);
                c.stored = 0;
            }
            bool fresh = (c.stored & now.bytes) != now.bytes;
            if ((!writes || atomic) && fresh && unwritten().size() < 100)
                unwritten().push_back({code, &c, threadIdx, blockIdx});
            if (writes)
                c.stored |= now.bytes;
        }
        if (!shared && writes && !atomic && c.write.grid == now.grid &&
            (c.write.bytes & now.bytes) && (c.write.block != now.block || c.write.tid != now.tid))
            ++counts.rewrites;
        if (!shared)
            streams_cell(c, now, writes, {"", 0});
        if ((c.write.bytes & now.bytes) && !ordered(c.write, b, shared)) {
            if (writes && !atomic) {
                pending_write = {p, size, {}, c.write, shared, code};
                memcpy(pending_write.before, p, size);
            } else {
                report_race(c.write, true, writes, shared, code);
            }
        }
        if (!atomic && (c.atomic.bytes & now.bytes) && !ordered(c.atomic, b, shared)) {
            if (writes)
                report_race(c.atomic, true, true, shared, code);
            else if (maybe().size() < 100)
                maybe().push_back(
                    {c.atomic, code, &c, hot.tid,
                     shared});  // the start of a compare-and-swap loop reads like this
        }
        if (atomic && !maybe().empty())
            for (size_t i = maybe().size(); i-- > 0;)
                if (maybe()[i].cell == &c && maybe()[i].tid == hot.tid) {
                    said().insert(size_t(maybe()[i].code) * 8 + 1);  // this place is such a loop
                    said().insert(size_t(maybe()[i].code) * 8 + 2);
                    maybe().erase(maybe().begin() + long(i));
                }
        if (writes)
            for (Access& r : c.read)
                if ((r.bytes & now.bytes) && !ordered(r, b, shared)) {
                    if (atomic) {
                        maybe_read(r, shared, code, &c);
                    } else {
                        report_race(r, false, true, shared, code);
                    }
                }
        remember(c, now, writes);
        done += n;
    }
}

static bool library_code(
    const void* code) {  // of our own headers (cuBLAS, Thrust ...), which may touch device memory
    static auto* known = new std::unordered_map<const void*, bool>;
    auto i = known->find(code);
    if (i != known->end())
        return i->second;
    return (*known)[code] = innermost_is_ours(code);
}

static void wrong_access(const char* kind, const void* code, const char* verb,
                         const std::string& what) {
    report(kind, site_of(code), "this %s %s", verb, what.c_str());
    if (in_kernel())
        abandon_grid(cudaErrorIllegalAddress);
}

// threadIdx and its like: in a kernels library they are thread-local memory on the heap, perhaps
// next to a NumPy array.
static bool is_index_variable(const char* p) {
    auto within = [p](const void* variable, size_t bytes) {
        return p >= static_cast<const char*>(variable) &&
               p < static_cast<const char*>(variable) + bytes;
    };
    return within(&threadIdx, sizeof threadIdx) || within(&blockIdx, sizeof blockIdx) ||
           within(&blockDim, sizeof blockDim) || within(&gridDim, sizeof gridDim) ||
           within(&hot, sizeof hot);
}

void access(const char* p, unsigned size, bool writes, bool atomic, const void* code) {
    settle_pending();
    learn_and_tell(p, writes, atomic);
    code = static_cast<const char*>(code) - 1;
    const char* verb = writes ? "writes" : "reads";
    if (in_arena(p)) {
        static Allocation* last = nullptr;
        Allocation* a =
            last && last->live && p >= last->start && p + size <= last->start + last->bytes
                ? last
                : find_allocation(p);
        bool inside = a && a->live && p >= a->start && p + size <= a->start + a->bytes;
        if (!inside) {
            if (!in_kernel() && library_code(code))
                return;
            std::string what = std::to_string(size) + " bytes, " +
                               (a ? describe(p, size) : "outside of any allocation");
            wrong_access(a && !a->live && p >= a->start && p < a->start + a->bytes
                             ? "use-after-free"
                             : "out-of-bounds",
                         code, verb, what);
            return;
        }
        last = a;
        if (!in_kernel()) {
            if (a->kind == cudaMemoryTypeDevice && !library_code(code) && !said_before(code, 4)) {
                report("host-dereferences-device", site_of(code),
                       "host code %s device memory (%s); copy it with cudaMemcpy first", verb,
                       describe(p, size).c_str());
                fflush(stdout);
                _exit(1);
            }
            if (a->kind != cudaMemoryTypeDevice && !library_code(code))
                host_too_early(*a, p, size, writes, code);
            return;
        }
        if (a->kind == cudaMemoryTypeDevice && !may_reach(this_device(), a->device) &&
            report_peer(a, site_of(code), verb))
            abandon_grid(cudaErrorIllegalAddress);
        if (size > 1 && size <= 16 && (size & (size - 1)) == 0 && size_t(p) % size && !atomic)
            misaligned(p, size, code);
        note_access(size, writes, atomic, false);
        if (Cell* cells = cells_of(a->start, a->bytes))
            history(cells, size_t(p - a->start), p, size, writes, atomic, false, code);
        return;
    }
    if (!in_kernel())
        return;
    size_t offset = size_t(p - hot.shared);
    if (offset < hot.shared_bytes) {
        const char* dynamic = hot.dynamic_shared;
        size_t given = hot.block->grid->shared;
        if (p >= dynamic || offset >= hot.shared_bytes - (256u << 10)) {
            if (given == 0) {
                report(
                    "missing-shared-size", site_of(code),
                    "the kernel uses an extern __shared__ array, but the launch in line %d gives "
                    "it no bytes: kernel<<<blocks, threads, BYTES>>>",
                    hot.block->grid->at.line);
                abandon_grid(cudaErrorIllegalAddress);
            }
            if (p < dynamic || p + size > dynamic + given) {
                wrong_access("out-of-bounds", code, verb,
                             std::to_string(size) + " bytes at byte " +
                                 std::to_string(long(p - dynamic)) + " of the " +
                                 std::to_string(given) +
                                 " bytes of dynamic shared memory that the launch gives");
            }
        } else if (!inside_shared_variable(offset, size)) {
            wrong_access("out-of-bounds", code, verb,
                         std::to_string(size) + " bytes of shared memory outside of its variables");
        }
        if (size > 1 && size <= 16 && (size & (size - 1)) == 0 && size_t(p) % size && !atomic)
            misaligned(p, size, code);
        note_access(size, writes, atomic, true);
        if (hot.block->async_ready)
            checks_async_access(p, size, writes, code);
        if (Cell* cells = cells_of(hot.shared, hot.shared_bytes))
            history(cells, offset, p, size, writes, atomic, true, code);
        return;
    }
    const char* end = hot.shared + hot.shared_bytes;
    if (p >= end && p < end + 16384) {
        size_t given = hot.block->grid->shared;
        if (given == 0) {
            report("missing-shared-size", site_of(code),
                   "the kernel uses an extern __shared__ array, but the launch in line %d gives "
                   "it no bytes: kernel<<<blocks, threads, BYTES>>>",
                   hot.block->grid->at.line);
            abandon_grid(cudaErrorIllegalAddress);
        }
        wrong_access("out-of-bounds", code, verb,
                     std::to_string(size) + " bytes at byte " +
                         std::to_string(long(p - hot.dynamic_shared)) + " of the " +
                         std::to_string(given) +
                         " bytes of dynamic shared memory that the launch gives");
    }
    if (hot.block->async_ready)
        checks_sums(p, code);
    if (!hot.fiber || in_stack(p, hot.fiber) || is_index_variable(p))
        return;
    if (Allocation* a = find_python_buffer(p)) {
        if (p < a->start || p + size > a->start + a->bytes)
            wrong_access("out-of-bounds", code, verb,
                         std::to_string(size) + " bytes, " + describe(p, size));
        note_access(size, writes, atomic, false);
        if (Cell* cells = cells_of(a->start, a->bytes))
            history(cells, size_t(p - a->start), p, size, writes, atomic, false, code);
        return;
    }
    const char* arguments =
        static_cast<const char*>(hot.block->grid->work.body);  // copied for each thread
    if (p >= arguments && p < arguments + 4096)
        return;
    size_t heap = host_heap_bytes(p);
    if ((heap || on_host_stack(p)) && !is_registered(p) && site_of(code).line) {
        std::string what =
            heap ? "the " + std::to_string(heap) + " bytes that host code has from new or malloc"
                 : "the host's stack";
        report("host-pointer-in-kernel", site_of(code),
               "the kernel %s memory of the host (%s): a kernel needs memory from cudaMalloc "
               "or cudaMallocManaged, also behind the pointers in a struct",
               verb, what.c_str());
        abandon_grid(cudaErrorIllegalAddress);
    }
}

void misaligned(const void* p, unsigned size, const void* code) {
    report(
        "misaligned", site_of(code),
        "an access of %u bytes at an address that is no multiple of %u (%p): a vector type such as "
        "float4 needs an aligned address",
        size, size, p);
    abandon_grid(cudaErrorMisalignedAddress);
}

void check_atomic(const volatile void* p, unsigned bytes, const void* code) {
    access(const_cast<const char*>(static_cast<const volatile char*>(p)), bytes, true, true, code);
}
}  // namespace cuda_cpu

// ---- what Python asks
extern "C" __attribute__((visibility("default"))) cuda_cpu::Counts cuda_cpu_counts() {
    return cuda_cpu::counts;
}

// ---- what the compiler calls
using cuda_cpu::access;
#define HOOK extern "C" __attribute__((visibility("default"))) void
#define CODE __builtin_return_address(0)
#define ACCESSES(n)                                       \
    HOOK __tsan_read##n(char* p) {                        \
        access(p, n, false, false, CODE);                 \
    }                                                     \
    HOOK __tsan_write##n(char* p) {                       \
        access(p, n, true, false, CODE);                  \
    }                                                     \
    HOOK __tsan_unaligned_read##n(char* p) {              \
        access(p, n, false, false, CODE);                 \
    }                                                     \
    HOOK __tsan_unaligned_write##n(char* p) {             \
        access(p, n, true, false, CODE);                  \
    }                                                     \
    HOOK __tsan_volatile_read##n(char* p) {               \
        access(p, n, false, cuda_cpu::in_arena(p), CODE); \
    }                                                     \
    HOOK __tsan_volatile_write##n(char* p) {              \
        access(p, n, true, cuda_cpu::in_arena(p), CODE);  \
    }                                                     \
    HOOK __tsan_read_write##n(char* p) {                  \
        access(p, n, false, false, CODE);                 \
        access(p, n, true, false, CODE);                  \
    }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
static void range(const void* memory, size_t n, bool write, const void* code) {
    const char* p = static_cast<const char*>(memory);
    for (size_t i = 0; i < n; i += 16)
        access(p + i, unsigned(n - i < 16 ? n - i : 16), write, false, code);
}
HOOK __tsan_read_range(char* p, size_t n) {
    range(p, n, false, CODE);
}
HOOK __tsan_write_range(char* p, size_t n) {
    range(p, n, true, CODE);
}
#define COPY extern "C" __attribute__((visibility("default"))) void*
COPY cuda_cpu_memset(void* to, int value, size_t n) {
    range(to, n, true, CODE);
    return memset(to, value, n);
}
COPY cuda_cpu_memcpy(void* to, const void* from, size_t n) {
    range(from, n, false, CODE);
    range(to, n, true, CODE);
    return memcpy(to, from, n);
}
COPY cuda_cpu_memmove(void* to, const void* from, size_t n) {
    range(from, n, false, CODE);
    range(to, n, true, CODE);
    return memmove(to, from, n);
}
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
    report("division-by-zero", {d->at.file, int(d->at.line)},
           "an integer is divided by zero (a GPU goes on with a meaningless "
           "value)");
    if (in_kernel())
        abandon_grid(cudaErrorLaunchFailure);
}
