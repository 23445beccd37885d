// The common access, quickly: a plain one of 4, 8 or 16 bytes to an allocation that this launch has
// used before, or to a shared variable, where nothing that is known of these bytes stands against
// it. Whatever is less plain goes the whole way (use_memory in checks.cpp), which tells mistakes.
#include "checks.h"
#include "fiber.h"

namespace cuda_cpu {
void use_memory(const Use& use);
bool shared_variable_at(size_t offset, size_t& from, size_t& to);

// ---- what the running thread is
struct Now {
    unsigned grid, block;
    unsigned short tid;
    bool is_mine(const Access& a) const {
        return a.grid == grid && a.block == block && a.tid == tid;
    }
};
// Of another launch, which this one is known to come behind.
static bool of_earlier_work(unsigned grid, const Now& now) {
    static unsigned earlier[16], of_grid[16];  // known answers
    if (grid == now.grid)
        return false;
    unsigned place = grid % 16;
    if (earlier[place] == grid && of_grid[place] == now.grid)
        return true;
    if (!comes_behind(grid))
        return false;
    earlier[place] = grid;
    of_grid[place] = now.grid;
    return true;
}
static inline bool harmless(const Access& a, const Now& now) {
    return a.bytes == 0 || now.is_mine(a) || of_earlier_work(a.grid, now);
}
static inline bool harmless_in_block(const Access& a, const Now& now, unsigned generation) {
    return a.bytes == 0 || a.grid != now.grid || a.block != now.block || a.tid == now.tid ||
           a.generation != generation;
}
// Written one by one: a whole Access that has just been put together costs a stall to copy.
struct Written {
    const Now& now;
    unsigned generation, meetings;
    const void* code;
    Written(const Block& b, const Now& now, const void* code)
        : now(now),
          generation(b.generation),
          meetings(hot.tracking ? b.warps[now.tid >> 5].syncs : 0),
          code(code) {}
    inline void to(Access& a) const {
        a.grid = now.grid;
        a.block = now.block;
        a.generation = generation;
        a.meetings = meetings;
        a.when = clock_now;
        a.tid = now.tid;
        a.bytes = 15;
        a.atomic = false;
        a.code = code;
    }
    // Would every write that this read stands against stand against one of these two, too? So it is
    // where they are of two blocks (there are no fences here), or of this one since its barrier.
    inline bool is_covered_by(const Access& a, const Access& b) const {
        if (a.grid != now.grid || b.grid != now.grid || a.when != clock_now || b.when != clock_now)
            return false;
        if (a.block != b.block)
            return true;
        bool since_barrier = a.generation == generation && b.generation == generation;
        if (a.block != now.block || !since_barrier || a.tid == b.tid)
            return false;
        unsigned warp = now.tid >> 5;
        bool one_warp = a.tid >> 5 == b.tid >> 5;
        return !one_warp ||
               (a.tid >> 5 == warp && a.meetings == meetings && b.meetings == meetings);
    }
    inline void to_reads(Cell& c) const {
        if (is_covered_by(c.read[0], c.read[1]))
            return;
        if (c.read[0].bytes && !now.is_mine(c.read[0]))
            c.read[1] = c.read[0];
        to(c.read[0]);
    }
};
static inline void count_access(const char* p, unsigned size, bool writes, bool shared) {
    OfThread& mine = this_thread();
    if (mine.unchanged != p)
        mine.unchanged = nullptr;
    mine.polled = nullptr;
    ++counts.total;
    counts.shared += shared;
    if (!shared) {
        counts.global_bytes += size;
        counts.wide += writes && size == 16;
        counts.wide_loads += !writes && size == 16;
    }
    unsigned long long accesses = ++mine.accesses;
    if (accesses > counts.busiest)
        counts.busiest = accesses;
}
static inline void count_stored(const Access& write, const Now& now) {
    unsigned before = now.is_mine(write) ? write.bytes : 0;
    OfThread& mine = this_thread();
    mine.stored += unsigned(__builtin_popcount(15 & ~before));
    if (mine.stored > counts.most_stored)
        counts.most_stored = mine.stored;
}

// ---- global memory
struct Known {
    const char *start = nullptr, *end = nullptr;
    Cell* cells;
    unsigned grid = 0;
    bool of_device;
};
static Known known[4];
static unsigned last_known = 0;
// The allocation that holds this, if the running launch may use it and has done so.
static const Known* known_at(const char* p, unsigned size, unsigned grid) {
    for (unsigned i = 0; i < 4; ++i) {
        const Known& k = known[(last_known + i) % 4];
        if (p < k.start || p + size > k.end || k.grid != grid)
            continue;
        last_known = (last_known + i) % 4;
        return &k;
    }
    return nullptr;
}
void quick_remembers(const Allocation& a) {
    unsigned grid = hot.block->check_grid;
    if (known_at(a.start, 0, grid) || a.bytes < 4)
        return;
    last_known = (last_known + 3) % 4;
    known[last_known] = {a.start, a.start + a.bytes / 4 * 4, cells_of(a.start, a.bytes), grid,
                         a.kind == cudaMemoryTypeDevice};
    if (!known[last_known].cells)
        known[last_known].grid = 0;
}
static bool all_fresh(const char* p, unsigned size) {
    for (unsigned i = 0; i < size; i += 4)
        if (*reinterpret_cast<const unsigned*>(p + i) != 0xFFFFFFFFu)
            return false;
    return true;
}
static bool global_use(const Known& k, const char* p, unsigned size, bool writes,
                       const void* code) {
    const Block& b = *hot.block;
    const Now now = {b.check_grid, unsigned(b.linear), (unsigned short)hot.tid};
    Cell* cells = k.cells + (p - k.start) / 4;
    if (!writes && k.of_device && all_fresh(p, size))
        return false;
    for (unsigned i = 0; i < size / 4; ++i) {
        const Cell& c = cells[i];
        if (!harmless(c.write, now) || !harmless(c.atomic, now))
            return false;
        if (writes && (!harmless(c.read[0], now) || !harmless(c.read[1], now)))
            return false;
    }
    count_access(p, size, writes, false);
    const Written access(b, now, code);
    for (unsigned i = 0; i < size / 4; ++i) {
        Cell& c = cells[i];
        if (!writes) {
            access.to_reads(c);
            continue;
        }
        count_stored(c.write, now);
        access.to(c.write);
        if (k.of_device)
            c.stored = 15;
    }
    return true;
}

// ---- shared memory
static bool shared_use(size_t offset, const char* p, unsigned size, bool writes, const void* code) {
    static size_t from = 1, to = 0;  // of the variable that was used last
    const Block& b = *hot.block;
    if (b.async_ready || b.cluster)
        return false;
    const char* dynamic = hot.dynamic_shared;
    bool in_dynamic = p >= dynamic && p + size <= dynamic + b.grid->shared;
    bool in_variable = offset >= from && offset + size <= to;
    if (!in_dynamic && !in_variable &&
        (!shared_variable_at(offset, from, to) || offset + size > to))
        return false;
    const Now now = {b.check_grid, unsigned(b.linear), (unsigned short)hot.tid};
    Cell* cells = cells_of(hot.shared, hot.shared_bytes);
    if (!cells)
        return false;
    cells += offset / 4;
    for (unsigned i = 0; i < size / 4; ++i) {
        const Cell& c = cells[i];
        if (c.stored_grid != now.grid || c.stored_block != now.block)
            return false;
        if (!writes && c.stored != 15)
            return false;
        if (!harmless_in_block(c.write, now, b.generation) ||
            !harmless_in_block(c.atomic, now, b.generation))
            return false;
        if (writes && (!harmless_in_block(c.read[0], now, b.generation) ||
                       !harmless_in_block(c.read[1], now, b.generation)))
            return false;
    }
    count_access(p, size, writes, true);
    const Written access(b, now, code);
    for (unsigned i = 0; i < size / 4; ++i) {
        if (!writes) {
            access.to_reads(cells[i]);
            continue;
        }
        access.to(cells[i].write);
        cells[i].stored = 15;
    }
    return true;
}

static inline bool quick(const char* p, unsigned size, bool writes, const void* code) {
    if (anything_pending)
        return false;
    if (!hot.block)
        return !any_taken && !in_arena(p);
    const Fiber* stack = hot.fiber;
    if (stack && p >= stack->stack && p < stack->stack + stack->size)
        return !hot.block->async_ready;
    bool plain = (size == 4 || size == 8 || size == 16) && size_t(p) % size == 0;
    if (!plain || in_pieces || any_fences || counts.absent || recording)
        return false;
    size_t offset = size_t(p - hot.shared);
    if (offset < hot.shared_bytes)
        return shared_use(offset, p, size, writes, code);
    const Known* k = known_at(p, size, hot.block->check_grid);
    return k && global_use(*k, p, size, writes, code);
}
void access(const char* p, unsigned size, bool writes, bool atomic, const void* code) {
    const char* instruction = static_cast<const char*>(code) - 1;
    if (!atomic && quick(p, size, writes, instruction))
        return;
    use_memory({p, size, writes, atomic, false, false, instruction});
}
}  // namespace cuda_cpu
