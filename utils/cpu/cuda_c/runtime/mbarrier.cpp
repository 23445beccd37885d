// mbarrier: barriers in shared memory that count arrivals and bytes. Source: PTX ISA, "mbarrier".
// A phase is over when no arrival is missing and no announced byte. Who waits is woken then; copies
// arrive when nobody can go on (copy_engine.cpp).
#include "asynchronous.h"

namespace cuda_cpu {
static const unsigned long long mark = 0x6d62617272696572ull;  // "mbarrier": what memory holds
static const unsigned most_arrivals = (1u << 20) - 1;

static unsigned long long mark_of(const MBarrier& m) {
    return mark ^ (unsigned long long)m.phase << 40;
}
static void write_mark(char* p, const MBarrier& m) {
    unsigned long long text = mark_of(m);
    memcpy(p, &text, 8);
}

// `count` new ones in a vector. `assign` would copy one to all of them: that is much to compile.
template <class T>
static void renew(std::vector<T>& all, size_t count) {
    all.clear();
    all.resize(count);
}

Async& async_of(Block& b) {
    if (!b.async) {
        b.async = new Async;
        b.async_ready = false;
    }
    if (!b.async_ready) {
        b.async_ready = true;
        Async& a = *b.async;
        a.barriers.clear();
        a.flying.clear();
        for (NamedBarrier& n : a.named)
            n = NamedBarrier();
        a.at_cluster = List();
        a.arriving.clear();
        a.leaving.clear();
        a.boxes.clear();
        unsigned n = b.hot.count;
        renew(a.copies, n);
        renew(a.stores, n);
        renew(a.groups, (n + 127) / 128);
        a.cluster_phase.assign(n, ~0u);
        a.failed.assign(n, {nullptr, 0});
        if (checking) {
            a.known.assign(n, Clock(n));
            a.proxy_fence.assign(n, 0);
        }
    }
    return *b.async;
}
Async& own_async() {
    return async_of(*hot.block);
}

MBarrier& barrier_at(char* p, Block& b, Site at, const char* what) {
    Async& a = async_of(b);
    if (size_t(p) % 8)
        refuse("misaligned", at,
               "%s: a barrier lies at a multiple of 8 bytes, this address is none", what);
    auto found = a.barriers.find(p);
    if (found == a.barriers.end())
        refuse("mbarrier-uninitialised", at,
               "%s: there is no barrier at this place in shared memory: mbarrier.init comes first, "
               "and the others learn of it by a __syncthreads()",
               what);
    MBarrier& m = found->second;
    unsigned long long held;
    memcpy(&held, p, 8);
    if (held != mark_of(m))
        refuse("mbarrier-overwritten", at,
               "%s: something has been written over the barrier that line %d initialised", what,
               m.at.line);
    if (checking)
        checks_uses_barrier(b, m, at, what);
    return m;
}

static void end_phase_if_complete(Block& b, char* p, MBarrier& m) {
    if (m.pending || m.bytes)
        return;
    m.pending = m.expected;
    ++m.phase;
    m.polled = false;
    write_mark(p, m);
    if (checking)
        checks_phase_over(m);
    if (m.waiting.head)
        wake(b, m.waiting);
}
static char* place_of(Block& b, const MBarrier& m) {
    for (auto& [p, other] : b.async->barriers)
        if (&other == &m)
            return p;
    return nullptr;
}
void complete_bytes(Block& b, MBarrier& m, size_t bytes) {
    m.bytes -= (long long)bytes;
    end_phase_if_complete(b, place_of(b, m), m);
}
static void arrive(Block& b, char* p, MBarrier& m, unsigned count, Site at) {
    if (count > m.pending)
        refuse("mbarrier-arrivals", at,
               "mbarrier: %u arrival%s more than this phase waits for: it lacks %u of the %u that "
               "line "
               "%d announced",
               count - m.pending, count - m.pending == 1 ? "" : "s", m.pending, m.expected,
               m.at.line);
    if (checking)
        checks_arrive(b, m);
    m.pending -= count;
    end_phase_if_complete(b, p, m);
}

// What the barriers of a block wait for, for the report of a deadlock.
std::string barriers_text(const Block& b) {
    std::string text;
    for (auto& [p, m] : b.async->barriers) {
        if (!m.waiting.head)
            continue;
        char line[300];
        std::string bytes;
        if (m.bytes > 0)
            bytes = ", and " + std::to_string(m.bytes) + " announced bytes that no copy brings";
        if (m.bytes < 0)
            bytes = ", and " + std::to_string(-m.bytes) + " bytes came that were not announced";
        snprintf(line, sizeof line,
                 "\n    the barrier of line %d lacks %u of its %u arrivals%s; %u phase%s of it %s "
                 "over",
                 m.at.line, m.pending, m.expected, bytes.c_str(), m.phase, m.phase == 1 ? "" : "s",
                 m.phase == 1 ? "is" : "are");
        text += line;
    }
    return text;
}

namespace ptx {
void mbarrier_init(u64 address, u32 arrivals, Site at) {
    InShared s = find_shared(address, at);
    if (size_t(s.p) % 8)
        refuse("misaligned", at,
               "mbarrier.init: a barrier lies at a multiple of 8 bytes, this address is none");
    if (arrivals == 0 || arrivals > most_arrivals)
        refuse("mbarrier-arrivals", at,
               "mbarrier.init: a barrier for %u arrivals; 1 to %u are "
               "possible",
               arrivals, most_arrivals);
    Async& a = async_of(*s.block);
    auto known = a.barriers.find(s.p);
    if (known != a.barriers.end() && known->second.waiting.head)
        refuse("mbarrier-overwritten", at,
               "mbarrier.init: threads wait for the barrier that line %d initialised here",
               known->second.at.line);
    unsigned number =
        known != a.barriers.end() ? known->second.number : unsigned(a.barriers.size());
    MBarrier& m = a.barriers[s.p];
    m = MBarrier();
    m.expected = m.pending = arrivals;
    m.number = number;
    m.at = at;
    if (checking)
        checks_born(*s.block, m);
    write_mark(s.p, m);
}
void mbarrier_inval(u64 address, Site at) {
    InShared s = find_shared(address, at);
    barrier_at(s.p, *s.block, at, "mbarrier.inval");
    async_of(*s.block).barriers.erase(s.p);
}
u64 mbarrier_arrive(u64 address, u32 count, u32 bytes, bool drop, Site at) {
    InShared s = find_shared(address, at);
    if (s.block->left_cluster)
        return 0;  // told; nobody waits there any more
    MBarrier& m = barrier_at(s.p, *s.block, at, "mbarrier.arrive");
    u64 state = u64(m.phase) << 32 | m.pending;
    m.bytes += bytes;
    if (drop)
        m.expected -= count;
    arrive(*s.block, s.p, m, count, at);
    return state;
}
void mbarrier_expect(u64 address, u32 bytes, Site at) {
    InShared s = find_shared(address, at);
    barrier_at(s.p, *s.block, at, "mbarrier.expect_tx").bytes += bytes;
}
void mbarrier_complete(u64 address, u32 bytes, Site at) {
    InShared s = find_shared(address, at);
    complete_bytes(*s.block, barrier_at(s.p, *s.block, at, "mbarrier.complete_tx"), bytes);
}
// Whether a phase is over: the one with this parity, or the one that a state belongs to. The first
// question in vain is answered at once, whoever asks again waits: a program that does not ask in a
// loop is wrong.
bool mbarrier_wait(u64 address, u64 which, bool is_parity, bool may_wait, Site at) {
    InShared s = find_shared(address, at);
    for (;;) {
        MBarrier& m = barrier_at(s.p, *s.block, at, "mbarrier.try_wait");
        unsigned phase =
            is_parity ? m.phase - ((m.phase & 1) == (which & 1) ? 0 : 1) : unsigned(which >> 32);
        if (m.phase != phase) {
            if (checking)
                checks_waited(*s.block, m);
            return true;
        }
        if (s.block != hot.block)
            refuse("cluster", at, "a thread can wait for barriers of its own block only");
        auto& failed = own_async().failed[hot.tid];
        bool again = failed.first == s.p && failed.second == m.phase;
        failed = {s.p, m.phase};
        if (!may_wait) {
            m.polled = true;
            if (again)
                give_way();
            return false;
        }
        if (!again)
            return false;
        wait_in(m.waiting, at_mbarrier, at);
    }
}
u32 mbarrier_pending(u64 state) {
    return u32(state);
}
}  // namespace ptx
}  // namespace cuda_cpu
