// Reads of device memory that nobody has written since cudaMalloc, by kernels or, when it has been
// copied, by the host. Such memory is full of one byte
// (memory.cpp), and every store is seen here but those of a library's own loops, which show in the
// bytes. So a read counts where none of its bytes was stored and all are as they were: padding, the
// rest of a struct, or the end of a float4 beside what was written are no mistakes.
#include <map>
#include "checks.h"

namespace cuda_cpu {
bool in_pieces = false;
static bool judged = false;  // what is read now is a piece of a range that was written in part

static bool untouched(const Allocation& a, const char* p, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
        if (p[i] != char(fresh_byte))
            return false;
    Cell* cells = cells_of(a.start, a.bytes);
    bool any = !cells;
    if (cells)
        over_cells(cells, size_t(p - a.start), bytes,
                   [&](const Cell& c, unsigned char which) { any |= c.stored & which; });
    return !any;
}
void note_stored(const Allocation& a, const char* p, size_t bytes) {
    if (a.kind != cudaMemoryTypeDevice)
        return;
    if (Cell* cells = cells_of(a.start, a.bytes))
        over_cells(cells, size_t(p - a.start), bytes,
                   [](Cell& c, unsigned char which) { c.stored |= which; });
}
static const Allocation* device_memory(const char* p, size_t bytes) {
    const Allocation* a = in_arena(p) ? find_allocation(p) : nullptr;
    bool holds = a && a->live && p >= a->start && p + bytes <= a->start + a->bytes;
    return holds && a->kind == cudaMemoryTypeDevice ? a : nullptr;
}

// ---- what of it the host has copied: told when host code reads it, since much that is copied is
// never looked at
struct Taken {
    std::vector<bool> unwritten;
    const Allocation* a;
    size_t offset;
    Site at;
};
typedef std::map<const char*, Taken> TakenRanges;
bool any_taken = false;
static bool changing = false;  // an allocation of the map's own
static TakenRanges& taken() {
    static auto* m = new TakenRanges;
    return *m;
}
static TakenRanges::iterator taken_at(const char* p) {
    auto i = taken().upper_bound(p);
    bool reaches =
        i != taken().begin() && p < std::prev(i)->first + std::prev(i)->second.unwritten.size();
    return reaches ? std::prev(i) : i;
}
void forget_taken(const char* p, size_t bytes) {
    if (!any_taken || changing)
        return;
    changing = true;
    for (auto i = taken_at(p); i != taken().end() && i->first < p + bytes;) {
        std::vector<bool>& unwritten = i->second.unwritten;
        size_t from = p > i->first ? size_t(p - i->first) : 0;
        size_t to = std::min(unwritten.size(), size_t(p + bytes - i->first));
        std::fill(unwritten.begin() + long(from), unwritten.begin() + long(to), false);
        i = to - from == unwritten.size() ? taken().erase(i) : std::next(i);
    }
    any_taken = !taken().empty();
    changing = false;
}
static void take(const char* to, const char* from, size_t bytes, Site at) {
    forget_taken(to, bytes);
    const Allocation* a = device_memory(from, bytes);
    if (!a)
        return;
    std::vector<bool> unwritten(bytes);
    for (size_t i = 0; i < bytes; ++i)
        unwritten[i] = untouched(*a, from + i, 1);
    if (std::find(unwritten.begin(), unwritten.end(), true) == unwritten.end())
        return;
    changing = true;
    taken()[to] = {unwritten, a, size_t(from - a->start), at};
    any_taken = true;
    changing = false;
}
void host_uses_taken(const Use& use) {
    if (use.writes)
        return forget_taken(use.p, use.size);
    auto i = taken_at(use.p);
    if (in_pieces || i == taken().end() || i->first > use.p)
        return;
    const Taken& t = i->second;
    size_t first = size_t(use.p - i->first);
    for (size_t n = first; n < first + use.size; ++n)
        if (n >= t.unwritten.size() || !t.unwritten[n] || i->first[n] != char(fresh_byte))
            return;
    if (said_before(code_of(t.at), 6))
        return;
    note(site_of(use.code),
         "this reads what the copy in line %d took from device memory that nobody has written: "
         "element %zu (%u bytes each) of the %zu bytes from cudaMalloc in line %d, which do not "
         "start at zero. A cudaMemset, a copy or a kernel must write it first "
         "[uninitialised-copy]",
         t.at.line, (t.offset + first) / use.size, use.size, t.a->bytes, t.a->at.line);
}

// A copy inside of device memory: what was written there is written here, and the rest is not.
void checks_copied(const char* to, const char* from, size_t bytes, Site at) {
    const Allocation* source = device_memory(from, bytes);
    const Allocation* target = device_memory(to, bytes);
    if (!target)
        return take(to, from, bytes, at);
    Cell* cells = source ? cells_of(target->start, target->bytes) : nullptr;
    if (!cells)
        return;
    for (size_t i = 0; i < bytes; ++i)
        if (untouched(*source, from + i, 1))
            over_cells(cells, size_t(to + i - target->start), 1,
                       [](Cell& c, unsigned char which) { c.stored &= (unsigned char)~which; });
}
void checks_overwrites(const volatile void* memory, size_t bytes) {
    const char* p = const_cast<const char*>(static_cast<const volatile char*>(memory));
    if (const Allocation* a = device_memory(p, bytes))
        note_stored(*a, p, bytes);
}

Range::Range(const char* p, size_t bytes, bool writes) {
    const Allocation* a = writes ? nullptr : device_memory(p, bytes);
    judged = a && !untouched(*a, p, bytes);
    in_pieces = true;
}
Range::~Range() {
    in_pieces = judged = false;
}

// Told when the launch is over: another thread that stores it later makes a race of it, or it was
// read for nothing, beside a flag that said so.
struct Unread {
    Use use;
    const Allocation* a;
    const Cell* cell;
    Block* block;
    uint3 thread, index;
    unsigned tid, linear;
};
static std::vector<Unread>& unread() {
    static auto* v = new std::vector<Unread>;
    return *v;
}
void note_device_use(const Allocation& a, const Use& use) {
    if (a.kind != cudaMemoryTypeDevice)
        return;
    bool reads = !use.writes || use.update;
    if (reads && !judged && unread().size() < 1000 && untouched(a, use.p, use.size)) {
        Block& b = *hot.block;
        Cell* cells = cells_of(a.start, a.bytes);
        unread().push_back({use, &a, cells ? cells + (use.p - a.start) / 4 : nullptr, &b, threadIdx,
                            blockIdx, hot.tid, unsigned(b.linear)});
    }
    if (use.writes)
        note_stored(a, use.p, use.size);
}
static bool stored_by_another(const Unread& u) {
    auto another = [&u](const Access& a) {
        return a.bytes && a.grid == u.block->check_grid && (a.tid != u.tid || a.block != u.linear);
    };
    return u.cell && !u.use.atomic && (another(u.cell->write) || another(u.cell->atomic));
}
static void tell(const Unread& u) {
    Block* outer = hot.block;
    uint3 thread = threadIdx, index = blockIdx;
    hot.block = u.block;
    threadIdx = u.thread;
    blockIdx = u.index;
    size_t offset = size_t(u.use.p - u.a->start);
    report("uninitialised-global", site_of(u.use.code),
           "this reads device memory that nobody has written: element %zu (%u bytes each) of the "
           "%zu bytes from cudaMalloc in line %d, which do not start at zero. A cudaMemset, a copy "
           "or another kernel must write it first",
           offset / u.use.size, u.use.size, u.a->bytes, u.a->at.line);
    hot.block = outer;
    threadIdx = thread;
    blockIdx = index;
}
void settle_unwritten() {
    std::vector<Unread> all;
    all.swap(unread());
    for (const Unread& u : all) {
        bool race = was_said(u.use.code, 1) || was_said(u.use.code, 2);
        if (!race && !stored_by_another(u) && !said_before(u.use.code, 3))
            tell(u);
    }
}
}  // namespace cuda_cpu
