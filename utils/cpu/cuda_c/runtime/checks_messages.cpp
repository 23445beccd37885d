// Messages between blocks: one stores data and then a sign that they are there, by atomic
// operations or volatile accesses; another sees the sign and reads the data. No two of these race,
// but without a fence between the first two it may read what was there before (PTX ISA, "Memory
// consistency model": the test called MP).
#include <deque>
#include <unordered_map>
#include "checks.h"

namespace cuda_cpu {
typedef unsigned long long Moment;  // counts such accesses
static const size_t REMEMBERED = 32;  // stores of a block

struct Store {
    const Cell* cell;
    Moment when;
    unsigned short tid;
    unsigned generation;
};
// Somebody's data that this thread has read, perhaps too early.
struct Early {
    const Cell* cell;
    Access store;
    const void* code;
    unsigned short tid;
};
struct Messages {
    Moment now = 0;
    std::unordered_map<unsigned, std::deque<Store>> stores;  // by block
    std::unordered_map<unsigned, std::unordered_map<const Cell*, Moment>> seen;  // by block
    std::vector<Early> early;
};
static Messages& messages() {
    static auto* m = new Messages;
    return *m;
}

void messages_begin_grid() {
    messages() = {};
}

static const Store* last_store(const Access& a, const Cell& c) {
    auto& stores = messages().stores[a.block];
    for (auto s = stores.rbegin(); s != stores.rend(); ++s)
        if (s->cell == &c && s->tid == a.tid)
            return &*s;
    return nullptr;
}
// Has a block seen what another one stored after this?
static bool has_seen_later(unsigned block, unsigned writer, const Store& data) {
    auto& seen = messages().seen[block];
    for (const Store& sign : messages().stores[writer]) {
        bool later =
            sign.tid == data.tid ? sign.when > data.when : sign.generation > data.generation;
        auto when = seen.find(sign.cell);
        if (later && sign.cell != data.cell && when != seen.end() && when->second > sign.when)
            return true;
    }
    return false;
}
static void forget_early(const Cell& c, unsigned tid) {
    auto& early = messages().early;
    for (size_t i = early.size(); i-- > 0;)
        if (early[i].cell == &c && early[i].tid == tid)
            early.erase(early.begin() + long(i));
}
static bool too_early(const Cell& c, const Access& now) {
    const Access& a = c.atomic;
    if (!(a.bytes & now.bytes) || a.block == now.block || ordered(a, *hot.block, false))
        return false;
    const Store* data = last_store(a, c);
    return data && has_seen_later(now.block, a.block, *data);
}

// What the running thread does atomically, or by a volatile access, to global memory.
void message(const Cell& c, const Access& now, const Use& use) {
    Messages& m = messages();
    ++m.now;
    bool looks = use.looks || !use.writes;
    bool polls = false;
    for (const Early& e : m.early)
        polls |= e.cell == &c && e.tid == now.tid;
    forget_early(c, now.tid);
    if (looks && !polls && m.early.size() < 100 && too_early(c, now))
        m.early.push_back({&c, c.atomic, use.code, now.tid});
    if (use.update || !use.writes)
        m.seen[now.block][&c] = m.now;
    if (looks)
        return;
    auto& stores = m.stores[now.block];
    stores.push_back({&c, m.now, now.tid, now.generation});
    if (stores.size() > REMEMBERED)
        stores.pop_front();
}
void messages_end_block() {
    for (const Early& e : messages().early) {
        if (said_before(e.code, 1))
            continue;
        int line = site_of(e.store.code).line;
        threadIdx = {e.tid % blockDim.x, e.tid / blockDim.x % blockDim.y,
                     e.tid / blockDim.x / blockDim.y};
        report("data-race", site_of(e.code),
               "this reads what block %u, thread %s stores in line %d. That something which the "
               "other one did afterwards has been seen does not mean that this has arrived, too: a "
               "__threadfence() must stand between the two",
               e.store.block, index_of(*hot.block->grid, e.store.tid), line);
    }
    messages().early.clear();
}
}  // namespace cuda_cpu
