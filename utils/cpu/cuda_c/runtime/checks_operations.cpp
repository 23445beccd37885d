// Work of different streams, and of the host, on the same memory: with nothing to make the one wait
// for the other (order.cpp) it is a mistake, however it turned out here.
#include <algorithm>
#include <string>
#include <unordered_set>
#include "checks.h"

namespace cuda_cpu {
// Of each launch and each copy, the operation that it belongs to: see order.cpp.
static std::vector<unsigned>& operation_of() {
    static auto* v = new std::vector<unsigned>(1);
    return *v;
}
unsigned next_grid() {
    operation_of().push_back(running_operation());
    return unsigned(operation_of().size() - 1);
}

bool comes_behind(unsigned grid) {
    return before_this(operation_of()[grid]);
}
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
static const char* does(const Operation& o, bool writes) {
    if (o.what == "cudaFreeAsync")
        return "frees";
    if (o.what == "cudaMallocAsync")
        return "allocates";
    return writes ? "writes" : "reads";
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
           told(operation(running_operation())).c_str(),
           does(operation(running_operation()), writes), told(operation(other)).c_str(),
           does(operation(other), a_writes));
}
void streams_cell(const Cell& c, const Access& now, bool writes, Site at) {
    for (const Access* a : {&c.write, &c.atomic})
        if (a->grid != now.grid && !(now.atomic && a->atomic))
            streams_race(*a, true, now.bytes, writes, at, now.code);
    for (const Access& r : c.read)
        if (writes && r.grid != now.grid)
            streams_race(r, false, now.bytes, true, at, now.code);
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
    over_cells(cells, size_t(static_cast<const char*>(p) - a->start), bytes,
               [&](Cell& c, unsigned char which) {
                   now.bytes = which;
                   streams_cell(c, now, writes, at);
                   remember(c, now, writes);
               });
    if (writes)
        note_stored(*a, static_cast<const char*>(p), bytes);
}
// Both count as writes of the memory: of what is new the first part tells enough.
void check_ownership(const void* p, Site at) {
    const size_t told_part = 64 << 10;
    Allocation* a = in_arena(p) ? find_allocation(p) : nullptr;
    Cell* cells = a && a->live && a->start == p ? cells_of(a->start, a->bytes) : nullptr;
    if (!cells)
        return;
    Access now = {next_grid(), 0, 0, 0, clock_now, 0, 15, false, nullptr};
    bool fresh = operation(running_operation()).what == "cudaMallocAsync";
    over_cells(cells, 0, fresh ? std::min(a->bytes, told_part) : a->bytes,
               [&](Cell& c, unsigned char which) {
                   now.bytes = which;
                   if (fresh)
                       remember(c, now, true);
                   else
                       streams_cell(c, now, true, at);
               });
}
// Host code looks at a flag, by a volatile or an atomic access.
void host_looks(const volatile void* flag, unsigned bytes) {
    const char* p = const_cast<const char*>(static_cast<const volatile char*>(flag));
    Allocation* a = in_kernel() || !in_arena(p) ? nullptr : find_allocation(p);
    Cell* cells = a && a->live ? cells_of(a->start, a->bytes) : nullptr;
    if (!cells)
        return;
    over_cells(cells, size_t(p - a->start), bytes, [&](Cell& c, unsigned char which) {
        if (c.atomic.bytes & which)
            order_host_behind_fence(operation_of()[c.atomic.grid]);
    });
}
// Host code uses memory that work may still be using.
void host_too_early(const Allocation& a, const Use& use) {
    Cell* cells = cells_of(a.start, a.bytes);
    if (!cells || callback_running())
        return;
    if (use.atomic)
        host_looks(use.p, use.size);
    over_cells(cells, size_t(use.p - a.start), use.size, [&](Cell& c, unsigned char which) {
        for (const Access* other : {&c.write, &c.atomic, &c.read[0], &c.read[1]}) {
            bool other_writes = other == &c.write || other == &c.atomic;
            unsigned number = operation_of()[other->grid];
            if (!(other->bytes & which) || !(use.writes || other_writes) ||
                (use.atomic && other->atomic) || host_waited_for(number) ||
                said_before(use.code, 5))
                continue;
            report("too-early", site_of(use.code),
                   "host code %s memory that %s may still be %s: wait first, with "
                   "cudaStreamSynchronize, cudaEventSynchronize or cudaDeviceSynchronize%s",
                   use.writes ? "writes" : "reads", told(operation(number)).c_str(),
                   other_writes ? "writing" : "reading",
                   device_count() > 1 ? " of its device" : "");
        }
    });
}
}  // namespace cuda_cpu
