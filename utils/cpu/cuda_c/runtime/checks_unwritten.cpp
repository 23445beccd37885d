// Reads of device memory that nobody has written since cudaMalloc. Such memory is full of one byte
// (memory.cpp), and every store is seen here but those of a library's own loops, which show in the
// bytes. So a read counts where none of its bytes was stored and all are as they were: padding, the
// rest of a struct, or the end of a float4 beside what was written are no mistakes.
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
// A copy inside of device memory: what was written there is written here, and the rest is not.
void checks_copied(const char* to, const char* from, size_t bytes) {
    const Allocation* source = device_memory(from, bytes);
    const Allocation* target = device_memory(to, bytes);
    Cell* cells = source && target ? cells_of(target->start, target->bytes) : nullptr;
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
    bool reads = !use.writes || use.atomic;
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
