// Asynchronous copies: when they begin, and when they arrive. Source: PTX ISA, "Data Movement and
// Conversion Instructions: Asynchronous copy".
#include <mutex>
#include "asynchronous.h"

namespace cuda_cpu {
// ---- what a barrier counts in
void fly(Block& b, Flying copy) {
    Async& a = async_of(b);
    if (checking && copy.bytes)
        checks_copy_begins(b, copy.to, copy.bytes, copy.at);
    a.flying.push_back(std::move(copy));
}
static bool is_awaited(const Flying& f) {
    return f.barrier->waiting.head || f.barrier->polled;
}
bool can_deliver(const Block& b) {
    if (!b.async || !b.async_ready)
        return false;
    for (const Flying& f : b.async->flying)
        if (is_awaited(f))
            return true;
    return false;
}
static void arrive(Block& b, Flying f) {
    if (f.bytes && f.barrier->phase != f.phase) {
        report("transaction-bytes", f.at,
               "these %zu bytes come after the phase of the barrier (line %d) that should wait for "
               "them: expect_tx has announced fewer bytes than the copies bring",
               f.bytes, f.barrier->at.line);
        abandon_grid(cudaErrorLaunchFailure);
    }
    engine_at = f.at;
    f.arrive();
    engine_at = {"", 0};
    if (!f.bytes)
        return;
    if (checking)
        checks_copy_arrives(b, f.to, f.bytes, f.barrier, f.at);
    complete_bytes(b, *f.barrier, f.bytes);
}
void deliver(Block& b) {
    std::vector<Flying>& all = b.async->flying;
    while (!b.ready.head) {
        std::vector<size_t> awaited;
        for (size_t i = 0; i < all.size(); ++i)
            if (is_awaited(all[i]))
                awaited.push_back(i);
        if (awaited.empty())
            return;
        size_t i = shuffled ? awaited[random_below(unsigned(awaited.size()))] : awaited.back();
        Flying f = std::move(all[i]);
        all.erase(all.begin() + long(i));
        arrive(b, std::move(f));
    }
}

// ---- what a thread waits for
static void finish(Waited& w, bool only_read) {
    engine_at = w.at;
    if (!w.was_read && w.read) {
        w.read();
        if (checking)
            checks_store_read(w.shared, w.bytes, w.at);
    }
    w.was_read = true;
    if (!only_read)
        w.write();
    engine_at = {"", 0};
}
static void wait_for(Groups& g, unsigned pending, bool only_read) {
    size_t done = g.closed.size() > pending ? g.closed.size() - pending : 0;
    for (size_t i = 0; i < done; ++i)
        for (Waited& w : g.closed[i])
            finish(w, only_read);
    if (!only_read)
        g.closed.erase(g.closed.begin(), g.closed.begin() + long(done));
}
static void finish_all(Groups& g) {
    for (auto& group : g.closed)
        for (Waited& w : group)
            finish(w, false);
    for (Waited& w : g.open)
        finish(w, false);
    g = Groups();
}

static bool first_told(const Block& b, Site at) {
    return b.grid->told_line.exchange(at.line) != at.line;
}
static void check_end_of_stores(const Block& b, Groups& g) {
    for (auto& group : g.closed)
        for (Waited& w : group)
            if (!w.was_read && first_told(b, w.at))
                report("copy-unfinished", w.at,
                       "the block ends before this copy has read its shared memory: wait with "
                       "cp.async.bulk.wait_group.read 0, or .wait_group 0");
    for (Waited& w : g.open)
        if (first_told(b, w.at))
            report("copy-unfinished", w.at,
                   "the block ends and nobody has waited for this copy: close its group with "
                   "cp.async.bulk.commit_group, then cp.async.bulk.wait_group 0");
}
void async_end(Block& b) {
    if (!b.async_ready)
        return;
    Async& a = *b.async;
    for (Flying& f : a.flying)
        if (f.bytes && first_told(b, f.at))
            report("copy-unfinished", f.at,
                   "the block ends while this copy to its shared memory is on its way: wait for "
                   "its barrier (line %d)",
                   f.barrier->at.line);
    for (auto& [p, m] : a.barriers)
        if (m.bytes < 0)
            report(
                "transaction-bytes", m.at,
                "the copies have brought %lld bytes more than expect_tx announced to this barrier",
                -m.bytes);
    for (unsigned t = 0; t < a.stores.size(); ++t) {
        check_end_of_stores(b, a.stores[t]);
        finish_all(a.stores[t]);
    }
    for (WarpGroup& w : a.groups)
        if (!w.products.empty() && first_told(b, w.products.front().at))
            report("wgmma-unfinished", w.products.front().at,
                   "the block ends and nobody has waited for this wgmma: "
                   "wgmma.commit_group, then wgmma.wait_group 0");
    b.async_ready = false;
}

static void check_aligned(unsigned long long to, unsigned long long from, unsigned bytes,
                          unsigned n, Site at, const char* what) {
    if (to % n || from % n || bytes % n)
        refuse("misaligned", at,
               "%s: both addresses and the %u bytes must be multiples of %u (the addresses are "
               "0x%llx and 0x%llx)",
               what, bytes, n, to, from);
}
// That a range of global memory can be used is seen when the copy begins, in its line.
static void touch(const char* p, size_t bytes, bool writes, bool atomic, Site at) {
    if (checking)
        checks_global(p, bytes, writes, atomic, at);
    engine_at = at;
    const volatile char* v = p;
    if (bytes) {
        (void)v[0];
        (void)v[bytes - 1];
    }
    engine_at = {"", 0};
}
static void check_inside(const Block& b, const char* p, size_t bytes, Site at) {
    const char* end = b.hot.dynamic_shared + b.grid->shared;
    if (p >= b.hot.dynamic_shared ? p + bytes > end : p + bytes > b.hot.dynamic_shared)
        refuse("out-of-bounds", at,
               "this copy of %zu bytes goes past the end of the %zu bytes of dynamic shared memory "
               "that the launch gives",
               bytes, b.grid->shared);
}

namespace ptx {
// ---- cp.async: each thread's own
void cp_async(u64 to, u64 from, u32 bytes, u32 given, Site at) {
    check_aligned(to, given ? from : 0, 0, bytes, at, "cp.async");
    InShared s = find_shared(to, at);
    check_inside(*s.block, s.p, bytes, at);
    const char* source = reinterpret_cast<const char*>(from);
    given = std::min(given, bytes);
    touch(source, given, false, false, at);
    char* p = s.p;
    Block* b = s.block;
    if (checking)
        checks_copy_begins(*b, p, bytes, at);
    own_async().copies[hot.tid].open.push_back({p, bytes, false, false, at, nullptr, [=] {
                                                    memcpy(p, source, given);
                                                    memset(p + given, 0, bytes - given);
                                                    if (checking)
                                                        checks_copy_arrives(*b, p, bytes, nullptr,
                                                                            at);
                                                }});
}
void cp_async_commit() {
    Groups& g = own_async().copies[hot.tid];
    g.closed.push_back(std::move(g.open));
    g.open.clear();
}
void cp_async_wait(u32 pending) {
    Groups& g = own_async().copies[hot.tid];
    if (pending == ~0u)
        return finish_all(g);
    wait_for(g, pending, false);
}
void cp_async_arrive(u64 barrier, bool no_increase, Site at) {
    InShared s = find_shared(barrier, at);
    MBarrier& m = barrier_at(s.p, *s.block, at, "cp.async.mbarrier.arrive");
    if (!no_increase)
        ++m.pending;
    Groups mine = std::move(own_async().copies[hot.tid]);
    own_async().copies[hot.tid] = Groups();
    auto held = std::make_shared<Groups>(std::move(mine));
    u64 address = barrier;
    fly(*s.block, {nullptr, 0, &m, s.p, m.phase, at, [=] {
                       finish_all(*held);
                       mbarrier_arrive(address, 1, 0, false, at);
                   }});
}

// ---- bulk copies
static void load_into(Block& b, char* to, u64 from, u32 bytes, char* barrier, Site at) {
    MBarrier& m = barrier_at(barrier, b, at, "cp.async.bulk");
    check_inside(b, to, bytes, at);
    const char* source = reinterpret_cast<const char*>(from);
    fly(b, {to, bytes, &m, barrier, m.phase, at, [=] { memcpy(to, source, bytes); }});
}
void bulk_load(u64 to, u64 from, u32 bytes, u64 barrier, u32 blocks, bool many, Site at) {
    check_aligned(to, from, bytes, 16, at, "cp.async.bulk");
    touch(reinterpret_cast<const char*>(from), bytes, false, false, at);
    unsigned count = hot.block->cluster ? unsigned(hot.block->cluster->blocks.size()) : 1;
    for (unsigned rank = 0; rank < (many ? 16u : 1u); ++rank) {
        if (many && !(blocks >> rank & 1))
            continue;
        if (many && rank >= count)
            refuse("out-of-bounds", at, "multicast to block %u of a cluster of %u", rank, count);
        InShared d = find_shared(many ? map_address(to, rank, at) : to, at);
        InShared b = find_shared(many ? map_address(barrier, rank, at) : barrier, at);
        if (b.block != d.block)
            refuse("cluster", at, "a copy and its barrier lie in the same block");
        load_into(*d.block, d.p, from, bytes, b.p, at);
    }
}
void bulk_between(u64 to, u64 from, u32 bytes, u64 barrier, Site at) {
    InShared source = find_shared(from, at);
    check_aligned(to, from, bytes, 16, at, "cp.async.bulk");
    if (checking)
        checks_engine_reads(source.p, bytes, at, "copy");
    InShared d = find_shared(to, at);
    load_into(*d.block, d.p, reinterpret_cast<u64>(source.p), bytes, find_shared(barrier, at).p,
              at);
}
void store_async(u64 to, u64 barrier, const void* value, u32 bytes, Site at) {
    InShared d = find_shared(to, at);
    InShared s = find_shared(barrier, at);
    if (s.block != d.block)
        refuse("cluster", at, "st.async: the value and its barrier lie in the same block");
    MBarrier& m = barrier_at(s.p, *s.block, at, "st.async");
    std::string held(static_cast<const char*>(value), bytes);
    char* p = d.p;
    fly(*d.block, {p, bytes, &m, s.p, m.phase, at, [=] { memcpy(p, held.data(), held.size()); }});
}
void bulk_store(u64 to, u64 from, u32 bytes, Reduce how, ElementType element, Site at) {
    check_aligned(to, from, bytes, 16, at, "cp.async.bulk");
    InShared s = find_shared(from, at);
    check_inside(*s.block, s.p, bytes, at);
    char* target = reinterpret_cast<char*>(to);
    touch(target, bytes, true, how != Reduce::none, at);
    if (checking)
        checks_engine_reads(s.p, bytes, at, "copy");
    auto held = std::make_shared<std::vector<char>>(bytes);
    const char* p = s.p;
    own_async().stores[hot.tid].open.push_back(
        {p, bytes, true, false, at, [=] { memcpy(held->data(), p, bytes); },
         [=] { store_elements(target, held->data(), bytes, how, element); }});
}
void bulk_commit() {
    Groups& g = own_async().stores[hot.tid];
    g.closed.push_back(std::move(g.open));
    g.open.clear();
}
void bulk_wait(u32 pending, bool read) {
    wait_for(own_async().stores[hot.tid], pending, read);
}
void fence_proxy_async() {
    own_async();
    if (checking)
        checks_proxy_fence();
}
}  // namespace ptx
}  // namespace cuda_cpu
