// The slow checks of what is asynchronous: shared memory that a copy has not filled, or that a copy
// or a wgmma is still reading; who learns of what by barriers in shared memory; proxy fences. What
// threads know of each other is kept as vector clocks: of each thread, up to when.
#include <algorithm>
#include "checks.h"

namespace cuda_cpu {
std::vector<Site>& named_sites();
const void* code_of(Site at) {
    std::vector<Site>& all = named_sites();
    for (size_t i = 0; i < all.size(); ++i)
        if (all[i].line == at.line && all[i].file == at.file)
            return reinterpret_cast<const void*>(i + 1);
    all.push_back(at);
    return reinterpret_cast<const void*>(all.size());
}
void check_access(const char* p, unsigned size, bool writes, Site at) {
    access(p, size, writes, false, static_cast<const char*>(code_of(at)) + 1);
}
void checks_global(const char* p, size_t bytes, bool writes, bool atomic, Site at) {
    const char* code = static_cast<const char*>(code_of(at)) + 1;
    Range whole(p, bytes, writes);
    for (size_t i = 0; i < bytes; i += 16)
        access(p + i, unsigned(std::min<size_t>(16, bytes - i)), writes, atomic, code);
}

// ---- what threads know
static unsigned known_of(const Clock& c, size_t i) {
    return i < c.size() ? c[i] : 0;
}
static void learn(Clock& to, const Clock& from) {
    if (to.size() < from.size())
        to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i)
        to[i] = std::max(to[i], from[i]);
}
static size_t place_of(const Block& b, unsigned tid) {
    return tid & engine_thread ? b.hot.count + (tid & ~engine_thread) : tid;
}
bool knows(const Block& b, const Access& a) {
    return known_of(b.async->known[hot.tid], place_of(b, a.tid)) >= a.when;
}
static Clock& tell(Block& b, unsigned tid) {
    Clock& mine = b.async->known[tid];
    mine[tid] = clock_now;
    return mine;
}
void checks_arrive(Block& b, MBarrier& m) {
    if (&b == hot.block)
        learn(m.arrived, tell(b, hot.tid));
    else
        checks_peer_arrives(*hot.block, m);
    ++clock_now;
}
// Another thread may use a barrier once it knows that it is there.
void checks_born(const Block& b, MBarrier& m) {
    m.born_generation = hot.block->generation;
    m.born_meetings = meetings_of(*hot.block, hot.tid);
    m.born_by = &b == hot.block ? (unsigned short)hot.tid : engine_thread;
    m.born_when = clock_now++;
}
void checks_uses_barrier(const Block& b, const MBarrier& m, Site at, const char* what) {
    if (m.born_by & engine_thread)  // another block of the cluster did it
        return;
    Access born = {b.check_grid,
                   unsigned(b.linear),
                   m.born_generation,
                   m.born_meetings,
                   m.born_when,
                   m.born_by,
                   15,
                   true,
                   nullptr};
    if (ordered(born, *hot.block, true) || said_before(code_of(at), 1))
        return;
    report("mbarrier-uninitialised", at,
           "%s: thread %s initialises this barrier in line %d, and nothing makes this thread wait "
           "for that: a __syncthreads() must stand between%s",
           what, index_of(*b.grid, m.born_by), m.at.line,
           &b == hot.block ? "" : " (cluster.sync(), where blocks use each other's barriers)");
}
void checks_phase_over(MBarrier& m) {
    learn(m.over, m.arrived);
    peers_learn(m.peers_over, m.peers_arrived);
}
void checks_waited(Block& b, const MBarrier& m) {
    learn(b.async->known[hot.tid], m.over);
    checks_peers_waited(b, m);
}
void checks_meet(Block& b, const unsigned* threads, unsigned n) {
    Clock all;
    for (unsigned i = 0; i < n; ++i)
        learn(all, tell(b, threads[i]));
    for (unsigned i = 0; i < n; ++i)
        b.async->known[threads[i]] = all;
    ++clock_now;
}
void checks_lanes_met(Block& b, unsigned warp, unsigned lanes) {
    unsigned threads[32];
    unsigned n = 0;
    for (unsigned i = 0; i < 32; ++i)
        if (lanes >> i & 1)
            threads[n++] = warp * 32 + i;
    checks_meet(b, threads, n);
}
void checks_cluster_met(Block& b) {
    Clock& mine = b.async->known[hot.tid];
    for (unsigned& when : mine)
        when = clock_now;
    ++clock_now;
}
void checks_proxy_fence() {
    hot.block->async->proxy_fence[hot.tid] = clock_now;
    ++clock_now;
}

// ---- ranges that copies fill or read
static const Moving* overlapping(const Ranges& all, const char* p, size_t bytes) {
    auto next = all.lower_bound(p + bytes);
    while (next != all.begin()) {
        --next;
        if (next->first + next->second.bytes > p)
            return &next->second;
        if (next->first + (64 << 10) < p)
            break;
    }
    return nullptr;
}
static const Product* reading(const Block& b, const char* p, size_t bytes) {
    for (const WarpGroup& w : b.async->groups)
        for (const Product& product : w.products)
            if (product_reads(b, product, p, bytes))
                return &product;
    return nullptr;
}
// Calls f(cell, which of its bytes) for a range of a block's shared memory.
template <class F>
static void each_cell(Block& b, const char* p, size_t bytes, F f) {
    Cell* cells = cells_of(b.memory, b.hot.shared_bytes);
    if (!cells)
        return;
    size_t offset = size_t(p - b.memory);
    for (size_t i = offset / 4; i * 4 < offset + bytes; ++i) {
        Cell& c = cells[i];
        if (c.stored_grid != b.check_grid || c.stored_block != unsigned(b.linear)) {
            c.stored_grid = b.check_grid;
            c.stored_block = unsigned(b.linear);
            c.stored = 0;
        }
        f(c);
    }
}
static Access now_of(Block& b, unsigned tid, const void* code) {
    return {b.check_grid, unsigned(b.linear),  b.generation, meetings_of(*hot.block, hot.tid),
            clock_now,    (unsigned short)tid, 15,           false,
            code};
}

static void tell_conflict(const Access& other, bool other_writes, Site at, const char* does) {
    const void* code = code_of(at);
    if (other.tid & engine_thread || said_before(code, 1) | said_before(other.code, 2))
        return;
    Site first = site_of(other.code);
    report(
        "async-race", at,
        "%s shared memory that thread %s %s in line %d, and nothing orders the two: that thread "
        "must arrive at a barrier (mbarrier.arrive, bar.sync, __syncthreads) that this one waits "
        "for",
        does, index_of(*hot.block->grid, other.tid), other_writes ? "writes" : "reads", first.line);
}

void checks_copy_begins(Block& to, const char* p, size_t bytes, Site at) {
    Async& a = async_of(to);
    record_flight(to, p, bytes, at, true, &to == hot.block ? hot.tid : 0);
    const void* code = code_of(at);
    const Moving* other = overlapping(a.arriving, p, bytes);
    if (other && !said_before(code, 3))
        report(
            "copies-overlap", at,
            "this copy goes where the copy of line %d is still to arrive: wait for that one first",
            other->at.line);
    other = overlapping(a.leaving, p, bytes);
    if (other && !said_before(code, 3))
        report("overwritten-early", at,
               "this copy overwrites shared memory that the copy of line %d has not read yet: "
               "cp.async.bulk.wait_group.read comes first",
               other->at.line);
    const Product* product = reading(to, p, bytes);
    if (product && !said_before(code, 3))
        report("overwritten-early", at,
               "this copy overwrites shared memory that the wgmma of line %d may still be reading: "
               "its group has not been waited for (wgmma.wait_group)",
               product->at.line);
    if (&to == hot.block)
        each_cell(to, p, bytes, [&](Cell& c) {
            for (const Access* x : {&c.write, &c.atomic, &c.read[0], &c.read[1]})
                if (x->bytes && !ordered(*x, to, true))
                    tell_conflict(*x, x == &c.write || x == &c.atomic, at, "this copy overwrites");
        });
    a.arriving[p] = {bytes, at, 0, &to == hot.block ? Peers() : peers_told(*hot.block)};
}
void checks_copy_arrives(Block& to, const char* p, size_t bytes, const MBarrier* m, Site at) {
    Async& a = async_of(to);
    record_flight(to, p, bytes, at, false, m ? 0 : hot.tid);
    if (m && a.arriving.count(p))
        peers_learn(const_cast<MBarrier*>(m)->peers_arrived, a.arriving[p].peers);
    a.arriving.erase(p);
    unsigned tid = m ? engine_thread | m->number : hot.tid;
    Access now = now_of(to, tid, code_of(at));
    each_cell(to, p, bytes, [&](Cell& c) {
        c.stored = 15;
        c.write = now;
        c.read[0] = c.read[1] = Access();
    });
    if (m) {
        Clock& known = const_cast<MBarrier*>(m)->arrived;
        size_t place = to.hot.count + m->number;
        if (known.size() <= place)
            known.resize(place + 1);
        known[place] = clock_now;
    }
    ++clock_now;
}
void checks_box(Block& to, const char* p, size_t bytes, unsigned swizzle, unsigned, Site at) {
    const unsigned widths[] = {0, 32, 64, 128};
    async_of(to).boxes[p] = {bytes, at, widths[swizzle], {}};
}
void checks_tile_swizzle(Block& b, const Product& p) {
    const unsigned widths[] = {0, 128, 64, 32};
    auto check = [&](unsigned long long descriptor, const char* which) {
        const char* start = shared_at(b, unsigned(descriptor & 0x3fff) << 4);
        const Moving* box = overlapping(b.async->boxes, start, 1);
        unsigned width = widths[descriptor >> 62 & 3];
        if (box && box->swizzle != width && !said_before(code_of(p.at), 4))
            report("swizzle", p.at,
                   "the descriptor of %s says a swizzle of %u bytes, but the copy of line %d wrote "
                   "this tile with a swizzle of %u",
                   which, width, box->at.line, box->swizzle);
    };
    if (!p.shape.a_in_registers)
        check(p.a, "a");
    check(p.b, "b");
}

// The copy engine or a wgmma is to read shared memory that threads have written.
void checks_engine_reads(const char* p, size_t bytes, Site at, const char* what) {
    Block& b = *hot.block;
    Async& a = own_async();
    const void* code = code_of(at);
    std::string does = std::string("this ") + what + " reads";
    const Moving* other = overlapping(a.arriving, p, bytes);
    if (other && !said_before(code, 5))
        report("too-early", at,
               "%s shared memory that the copy of line %d has not filled yet: wait for its barrier "
               "first, for the phase that the copy belongs to",
               does.c_str(), other->at.line);
    if (other || p < b.memory || p >= b.memory + b.hot.shared_bytes)
        return;
    each_cell(b, p, bytes, [&](Cell& c) {
        if (c.stored != 15 && !said_before(code, 6))
            report("uninitialised-shared", at,
                   "%s shared memory that no thread and no copy has written", does.c_str());
        const Access& w = c.write;
        if (w.grid != b.check_grid || w.block != unsigned(b.linear) || !w.bytes)
            return;
        if (!ordered(w, b, true))
            tell_conflict(w, true, at, does.c_str());
        if (w.tid & engine_thread)
            return;
        bool fenced = a.proxy_fence[w.tid] >= w.when || a.proxy_fence[hot.tid] >= w.when;
        if (!fenced && !said_before(code, 7))
            report("proxy-fence", at,
                   "%s shared memory that a thread wrote in line %d; without a "
                   "fence.proxy.async.shared::cta behind the writing it may read what was there "
                   "before",
                   does.c_str(), site_of(w.code).line);
    });
    if (what[0] == 'c')
        a.leaving[p] = {bytes, at, 0, {}};
}
// It has read: from now on the memory may be written by those who know of that.
void checks_store_read(const char* p, size_t bytes, Site at) {
    Block& b = *hot.block;
    b.async->leaving.erase(p);
    Access now = now_of(b, hot.tid, code_of(at));
    each_cell(b, p, bytes, [&](Cell& c) { remember(c, now, false); });
}

// ---- accesses of threads
void checks_async_access(const char* p, unsigned size, bool writes, const void* code) {
    Block& b = *hot.block;
    Async& a = *b.async;
    const Moving* other = overlapping(a.arriving, p, size);
    if (other && !said_before(code, 5))
        report(writes ? "overwritten-early" : "too-early", site_of(code),
               "this %s shared memory that the copy of line %d has not filled yet: wait for that "
               "copy first (for its barrier, in the phase it belongs to; or for its group)",
               writes ? "writes" : "reads", other->at.line);
    if (!writes)
        return;
    other = overlapping(a.leaving, p, size);
    if (other && !said_before(code, 6))
        report("overwritten-early", site_of(code),
               "this overwrites shared memory that the copy of line %d has not read yet: "
               "cp.async.bulk.wait_group.read comes first",
               other->at.line);
    const Product* product = reading(b, p, size);
    if (product && !said_before(code, 7))
        report("overwritten-early", site_of(code),
               "this overwrites shared memory that the wgmma of line %d may still be reading: its "
               "group has not been waited for (wgmma.wait_group)",
               product->at.line);
}
// A thread looks at its registers that a wgmma has not filled yet.
void checks_sums(const char* p, const void* code) {
    Block& b = *hot.block;
    if (hot.tid / 128 >= b.async->groups.size())
        return;
    for (const Product& product : b.async->groups[hot.tid / 128].products) {
        const Product::Part& part = product.parts[hot.tid % 128];
        if (!part.came)
            continue;
        size_t n = size_t(product.shape.f16_sum ? product.shape.n / 4 : product.shape.n / 2);
        auto within = [p](const float* place, size_t many) {
            const char* start = reinterpret_cast<const char*>(place);
            return p >= start && p < start + many * sizeof(float);
        };
        bool mine = part.sums && within(part.sums, n);
        for (const float* place : part.places)
            mine |= within(place, 1);
        if (mine && !said_before(code, 5))
            report("registers-too-early", site_of(code),
                   "this uses a sum of the wgmma in line %d, whose group has not been waited for: "
                   "wgmma.wait_group comes first",
                   product.at.line);
    }
}
}  // namespace cuda_cpu
