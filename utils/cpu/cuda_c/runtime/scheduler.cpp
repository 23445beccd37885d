// Threads, blocks and grids. A worker (one for each core) takes one block after another. The
// threads of a block run in turn on one stack as a plain loop; a thread that has to wait keeps that
// stack, and the loop goes on on another.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <condition_variable>
#include <numeric>
#include <thread>
#include <time.h>
#include "asynchronous.h"
#include "fiber.h"

CUDA_CPU_TLS uint3 threadIdx, blockIdx;
CUDA_CPU_TLS dim3 blockDim, gridDim;

namespace cuda_cpu {
CUDA_CPU_TLS Hot hot;
bool shuffled = std::getenv("CUDA_CPU_SEED") != nullptr;
unsigned long long seed = shuffled ? std::strtoull(std::getenv("CUDA_CPU_SEED"), nullptr, 10) : 0;

static const size_t stack_bytes = 256 << 10, page = 4096 * 4;
static const size_t static_shared_max = 4 << 20, dynamic_shared_max = 256 << 10;
unsigned shared_capacity() {
    return 227 << 10;
}

unsigned random_below(unsigned n) {
    static thread_local unsigned long long x = seed * 2 + 1;
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    return unsigned((x >> 33) % n);
}

// ---- stacks and blocks are kept for the next use
// Stacks come in slabs: one mapping, and a page between two stacks that nobody may touch.
static constexpr int slab_fibers = 64;
static constexpr size_t slab_bytes = slab_fibers * (stack_bytes + page);

// What no grid uses. All libraries of kernels in a process take from the same (share_stacks):
// Linux allows 65,530 mappings a process, a guard page makes two of them, and Python may hold
// hundreds of libraries.
struct Stacks {
    std::mutex lock;
    std::vector<Fiber*> slabs;  // each the first of its fibers
    int made = 0;  // fibers
};
static Stacks* stacks = new Stacks;  // never destroyed: helpers may outlive main

void* share_stacks(void* others) {
    if (others)
        stacks = static_cast<Stacks*>(others);
    return stacks;
}

struct Worker {
    Fiber* free_fibers = nullptr;
    std::vector<Fiber*> slabs;
    std::vector<Block*> free_blocks;
    std::vector<Meeting*> free_meetings;
    int in_use = 0;  // fibers
};
static thread_local Worker worker;

static Fiber* make_slab() {  // with the lock of `stacks`
    char* slab = static_cast<char*>(mmap(nullptr, slab_bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (slab == MAP_FAILED) {
        report("out-of-memory", {"", 0},
               "there is no memory left for the stacks of %d waiting threads", stacks->made);
        std::abort();
    }
    Fiber* all = new Fiber[slab_fibers];
    for (int i = 0; i < slab_fibers; ++i) {
        char* start = slab + size_t(i) * (stack_bytes + page);
        if (stacks->made < 16384)
            mprotect(start, page, PROT_NONE);
        all[i].stack = start + page;
        all[i].size = stack_bytes;
        all[i].number = i;
    }
    stacks->made += slab_fibers;
    return all;
}
static Fiber* take_slab() {
    std::lock_guard<std::mutex> l(stacks->lock);
    if (stacks->slabs.empty())
        return make_slab();
    Fiber* all = stacks->slabs.back();
    stacks->slabs.pop_back();
    return all;
}
static void return_slabs() {  // after a grid; one inside another grid's thread keeps them
    Worker& w = worker;
    if (w.in_use)
        return;
    std::lock_guard<std::mutex> l(stacks->lock);
    stacks->slabs.insert(stacks->slabs.end(), w.slabs.rbegin(), w.slabs.rend());
    w.slabs.clear();
    w.free_fibers = nullptr;
}

static Fiber* take_fiber() {
    Worker& w = worker;
    if (!w.free_fibers) {
        Fiber* all = take_slab();
        w.slabs.push_back(all);
        for (int i = slab_fibers - 1; i >= 0; --i) {
            all[i].next = w.free_fibers;
            w.free_fibers = &all[i];
        }
    }
    Fiber* f = w.free_fibers;
    w.free_fibers = f->next;
    ++w.in_use;
    return f;
}
static void give_fiber(Fiber* f) {
    f->next = worker.free_fibers;
    worker.free_fibers = f;
    --worker.in_use;
}
bool in_stack_guard(const void* p, const Fiber* f) {
    const char* c = static_cast<const char*>(p);
    return f && c >= f->stack - page && c < f->stack + 512;
}
bool in_stack(const void* p, const Fiber* f) {
    return p >= f->stack && p < f->stack + f->size;
}
bool below_stack(const void* sp, const Fiber* f) {  // a frame too big for the stack
    const char* c = static_cast<const char*>(sp);
    return c && f && c < f->stack && c > f->stack - (size_t(1) << 30);
}

static Block* take_block() {
    Worker& w = worker;
    if (!w.free_blocks.empty()) {
        Block* b = w.free_blocks.back();
        w.free_blocks.pop_back();
        return b;
    }
    Block* b = new Block();
    size_t bytes = static_shared_max + dynamic_shared_max;
    char* m = static_cast<char*>(mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    mprotect(m + bytes, page, PROT_NONE);
    b->memory = m;
    return b;
}

// ---- threads
static void carrier();

// From now on the block's threads are accounted for one by one.
static void begin_tracking(Block& b) {
    unsigned n = hot.count;
    if (b.threads.size() < n)
        b.threads.resize(n);
    for (unsigned i = 0; i < n; ++i) {
        b.threads[i].wait = not_waiting;
        b.threads[i].fiber = nullptr;
    }
    b.warps.assign((n + 31) / 32, WarpState());
    b.finished = hot.next ? hot.next - 1 : 0;  // 0: a cluster's, before any has begun
    for (unsigned i = 0; i < b.finished; ++i) {
        unsigned t = hot.order ? hot.order[i] : i;
        b.warps[t >> 5].exited |= 1u << (t & 31);
    }
    hot.tracking = true;
}

// Threads in step. Once all threads that a block still has have met at a barrier they will mostly
// meet at the next one, in the same order. Then arriving needs no lists: those before the running
// thread in `step` wait at step_at, those after it can go on. Whatever else a thread does first
// puts the lists in order again.
static void fall_out_of_step(Block& b) {
    Thread *now = hot.in_step, *last = nullptr;
    hot.in_step = nullptr;
    now->wait = not_waiting;
    unsigned before = 0;
    for (Thread* t = b.step.head; t != now; t = t->next, ++before) {
        t->at = b.step_at;
        last = t;
    }
    if (last) {
        b.barrier.head = b.step.head;
        b.barrier.tail = last;
        b.barrier.size = before;
        last->next = nullptr;
    }
    if (now->next) {
        b.ready.head = now->next;
        b.ready.tail = b.step.tail;
        b.ready.size = b.step.size - before - 1;
    }
}
static inline void any_order(Block& b) {
    if (hot.in_step)
        fall_out_of_step(b);
}

Thread* current_thread() {
    Block& b = *hot.block;
    if (!hot.tracking)
        begin_tracking(b);
    return &b.threads[hot.tid];
}

// Threads that wait for "who is active here?" stand as far along as they could get: those at the
// same place and of the same warp are the active ones.
static void settle_active(Block& b) {
    std::vector<Thread*> all;
    for (Thread* t = b.active.head; t; t = t->next)
        all.push_back(t);
    b.active = List();
    std::sort(all.begin(), all.end(), [](Thread* x, Thread* y) { return x->tid < y->tid; });
    for (size_t i = 0; i < all.size(); ++i) {
        unsigned mask = 0, warp = all[i]->tid >> 5;
        for (size_t j = i; j-- > 0 && all[j]->tid >> 5 == warp;)
            if (all[j]->meeting == all[i]->meeting)
                mask |= 1u << (all[j]->tid & 31);
        for (size_t j = i; j < all.size() && all[j]->tid >> 5 == warp; ++j)
            if (all[j]->meeting == all[i]->meeting)
                mask |= 1u << (all[j]->tid & 31);
        all[i]->at.line = int(mask);  // handed over in place of the line
    }
    for (Thread* t : all)
        b.ready.push(t);
}

static Thread* choose(Block& b) {
    if (!b.ready.head && hot.next >= hot.count && b.active.head)
        settle_active(b);
    if (!b.ready.head && hot.next >= hot.count && b.async_ready)
        deliver(b);
    if (!b.ready.head)
        return nullptr;
    if (shuffled) {
        if (hot.next < hot.count && random_below(2))
            return nullptr;
        for (unsigned i = random_below(b.ready.size < 8 ? b.ready.size : 8); i > 0; --i)
            b.ready.push(b.ready.pop());
    }
    return b.ready.pop();
}

// The stack to go on with: of a thread that can, of a new one, or of whoever runs the block. Null:
// `self`, which is just about to leave its stack, is the one that can.
static inline void* next_stack(Block& b, const Thread* self = nullptr) {
    Thread* t = b.ready.head;
    if (__builtin_expect(t && !shuffled, 1))
        b.ready.pop();
    else
        t = choose(b);
    if (t) {
        t->wait = not_waiting;
        hot.tid = t->tid;
        threadIdx = t->index;
        hot.fiber = t->fiber;
        if (__builtin_expect(t == self, 0))
            return nullptr;
        if (t->next) {
            __builtin_prefetch(t->next->sp);
            __builtin_prefetch(static_cast<char*>(t->next->sp) + 64);
        }
        return t->sp;
    }
    if (hot.next < hot.count) {
        Fiber* f = take_fiber();
        prepare(*f, carrier);
        hot.fiber = f;
        return f->sp;
    }
    return b.base;
}

static inline void sleep(Thread* t, Wait wait, Site at) {
    if (t->fiber != hot.fiber) {  // the first time: a thread that has waited keeps its stack
        t->tid = hot.tid;
        t->index = threadIdx;
        t->fiber = hot.fiber;
    }
    t->wait = wait;
    t->at = at;
}
static void suspend(Block& b, Wait wait, List& list, Site at) {
    any_order(b);
    Thread* t = current_thread();
    sleep(t, wait, at);
    list.push(t);
    if (void* to = next_stack(b, t))
        cuda_cpu_switch(&t->sp, to);
}

void wait_in(List& list, Wait wait, Site at) {
    suspend(*hot.block, wait, list, at);
}
void wake(Block& b, List& list) {
    if (&b == hot.block)
        any_order(b);
    b.ready.append(list);
}

static void carrier() {
    Block& b = *hot.block;
    b.grid->work.run(b.grid->work.body);
    give_fiber(hot.fiber);
    void* nowhere;
    cuda_cpu_switch(&nowhere, next_stack(b));
    __builtin_unreachable();
}

void start_shuffled_thread() {
    unsigned t = hot.tid = hot.order[hot.next++];
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

static const char* index_text(const uint3& i) {
    static thread_local char text[4][48];
    static thread_local int turn;
    char* s = text[turn++ & 3];
    snprintf(s, 48, "(%u,%u,%u)", i.x, i.y, i.z);
    return s;
}

// ---- __syncthreads
// A thread that leaves by `return` does not count, as on a GPU; one that passes the barrier by
// does.
static void divergent_barrier(Block& b, Site at) {
    b.mixed_warned = true;
    static std::atomic<const Kernel*> warned{nullptr};
    if (warned.exchange(b.grid->work.kernel) != b.grid->work.kernel)
        report("barrier-divergence", at,
               "this __syncthreads() was reached by some threads only: %u of the block's %u "
               "threads ended without it. Every "
               "thread of the block must reach it: move the barrier out of the `if` or the loop",
               b.finished - hot.left, hot.count);
}
static void complete_barrier(Block& b) {
    if (b.barrier.head && b.finished > hot.left && !b.mixed_warned)
        divergent_barrier(b, b.barrier.head->at);
    b.barrier_result[b.generation & 1] = b.barrier_value;
    ++b.generation;
    b.ready.append(b.barrier);
}

unsigned barrier_generation() {
    return hot.block ? hot.block->generation : 0;
}
int barrier_result(unsigned generation) {
    return hot.block ? hot.block->barrier_result[generation & 1] : 0;
}

static void different_barriers(Block& b, Site at) {
    b.mixed_warned = true;
    static std::atomic<const Kernel*> warned{nullptr};
    if (warned.exchange(b.grid->work.kernel) != b.grid->work.kernel)
        report("barrier-divergence", at,
               "threads of one block wait at different barriers: thread %s at line %d, this one at "
               "line %d. All threads "
               "must reach the same __syncthreads()",
               index_text(b.barrier.head->index), b.barrier.head->at.line, at.line);
}

Switch arrive(BarrierKind kind, int predicate, Site at) {
    Block* p = hot.block;
    if (!p)
        return {};
    Block& b = *p;
    if (Thread* t = hot.in_step; t && kind == plain) {
        if (t == b.step.head) {
            b.step_at = at;
            hot.step_line = at.line;
        }
        if (hot.step_line == at.line) {
            if (t->next)
                return {t, go_in_step(t->next)};
            ++b.generation;
            hot.step_line = 0;
            return {t, go_in_step(b.step.head)};
        }
    }
    any_order(b);
    if (!hot.tracking)
        begin_tracking(b);
    if (kind != plain) {
        if (b.barrier.size == 0)
            b.barrier_value = kind == all ? 1 : 0;
        if (kind == all)
            b.barrier_value &= predicate != 0;
        if (kind == any)
            b.barrier_value |= predicate != 0;
        if (kind == count)
            b.barrier_value += predicate != 0;
    }
    if (b.barrier.head && b.barrier.head->at.line != at.line && !b.mixed_warned)
        different_barriers(b, at);
    Thread* t = &b.threads[hot.tid];
    if (b.barrier.size + 1 + b.finished == hot.count) {
        if (b.finished > hot.left && !b.mixed_warned)
            divergent_barrier(b, at);
        if (!b.barrier.head) {  // alone
            complete_barrier(b);
            return {};
        }
        sleep(t, at_barrier, at);
        b.barrier.push(t);
        complete_barrier(
            b);  // the last one, too, goes on in its turn: what threads print comes in their order
        if (!shuffled && b.ready.size + b.finished == hot.count) {
            b.step = b.ready;
            b.ready = List();
            hot.step_line = 0;
            return {t, go_in_step(b.step.head)};
        }
        void* to = next_stack(b, t);
        return to ? Switch{t, to} : Switch{};
    }
    sleep(t, at_barrier, at);
    b.barrier.push(t);
    return {t, next_stack(b)};
}

// ---- warp operations
static void complete_meeting(Block& b, WarpState& w, Meeting* m) {
    for (Meeting** p = &w.meetings; *p; p = &(*p)->next)
        if (*p == m) {
            *p = m->next;
            break;
        }
    m->leaving = unsigned(__builtin_popcount(m->arrived));
    ++w.syncs;
    if (checking && b.async_ready)
        checks_lanes_met(b, unsigned(&w - b.warps.data()), m->arrived);
    b.ready.append(m->waiting);
}

void thread_finished() {
    Block& b = *hot.block;
    any_order(b);
    ++b.finished;
    WarpState& w = b.warps[hot.tid >> 5];
    w.exited |= 1u << (hot.tid & 31);
    if (b.barrier.head && b.barrier.size + b.finished == hot.count)
        complete_barrier(b);
    for (Meeting* m = w.meetings; m;) {
        Meeting* next = m->next;
        if ((m->mask & ~w.exited) == m->arrived)
            complete_meeting(b, w, m);
        m = next;
    }
    if (b.cluster)
        cluster_thread_ended(b);
}

Switch come(unsigned mask, WarpOp op, unsigned long long value, const char* name, Site at) {
    if (!hot.block) {
        report("host-code", at, "%s() can only be called in a kernel", name);
        std::exit(1);
    }
    Block& b = *hot.block;
    any_order(b);
    if (!hot.tracking)
        begin_tracking(b);
    unsigned warp = hot.tid >> 5, me = hot.tid & 31, bit = 1u << me;
    WarpState& w = b.warps[warp];
    if (!(mask & bit)) {
        report(
            "lane-not-in-mask", at,
            "%s() is called by lane %u, which is not in its mask 0x%08x: the mask must name every "
            "lane that takes part",
            name, me, mask);
        abandon_grid(cudaErrorIllegalInstruction);
    }
    unsigned lanes = hot.count - warp * 32;
    unsigned present = mask & ~w.exited & (lanes >= 32 ? ~0u : (1u << lanes) - 1);
    Meeting* m = w.meetings;
    while (m && (m->mask != mask || m->op != op))
        m = m->next;
    if (!m) {
        Worker& k = worker;
        if (k.free_meetings.empty()) {
            m = new Meeting;
        } else {
            m = k.free_meetings.back();
            k.free_meetings.pop_back();
        }
        m->mask = mask;
        m->arrived = 0;
        m->op = op;
        m->waiting = List();
        m->name = name;
        m->next = w.meetings;
        w.meetings = m;
    }
    m->arrived |= bit;
    m->value[me] = value;
    Thread* t = &b.threads[hot.tid];
    t->meeting = m;
    if (m->arrived == bit && m->arrived == present) {  // alone
        complete_meeting(b, w, m);
        return {nullptr, m};
    }
    sleep(t, at_meeting, at);
    m->waiting.push(t);
    if (m->arrived != present)
        return {t, next_stack(b)};
    complete_meeting(
        b, w, m);  // the last one, too, goes on in its turn: what lanes print comes in their order
    void* to = next_stack(b, t);
    return to ? Switch{t, to} : Switch{nullptr, m};
}

void part(Meeting* m) {
    if (--m->leaving == 0)
        worker.free_meetings.push_back(m);
}

void warp_incomplete(unsigned present, const char* name, Site at) {
    report("warp-incomplete", at,
           "wmma's %s() needs all 32 lanes of the warp, but only %d of them take part: the others "
           "have ended, "
           "or the block's number of threads is no multiple of 32",
           name, __builtin_popcount(present));
    abandon_grid(cudaErrorIllegalInstruction);
}

void check_matrix(const void* p, size_t row_bytes, const char* name, Site at) {
    if (!checking || (size_t(p) % 32 == 0 && row_bytes % 16 == 0))
        return;
    report("misaligned", at,
           "wmma's %s() is given the address %p and rows that begin every %zu bytes: the address "
           "must be a "
           "multiple of 32, the distance of the rows a multiple of 16",
           name, p, row_bytes);
    abandon_grid(cudaErrorMisalignedAddress);
}

unsigned active_lanes(const void* place, Site at) {
    if (!hot.block)
        return 1;
    Thread* t = current_thread();
    t->meeting = static_cast<Meeting*>(const_cast<void*>(place));
    suspend(*hot.block, at_active, hot.block->active, at);
    return unsigned(t->at.line);
}

void give_way() {
    Block* b = hot.block;
    hot.spin = 0;
    if (!b)
        return;
    b->moved = true;
    suspend(*b, gave_way, b->ways, {"", 0});
}
void keep_waiting(bool for_time, Site at) {
    if (for_time)
        return give_way();
    suspend(*hot.block, in_wait_loop, hot.block->ways, at);
}
void waited() {
    hot.block->moved = true;
    hot.block->grid->moves.fetch_add(1);
}

bool grid_is_cooperative() {
    return hot.block && hot.block->grid->cooperative;
}

void grid_barrier(Site at) {
    Block& b = *hot.block;
    if (!b.grid->cooperative) {
        report("grid-sync", at,
               "grid.sync() needs a cooperative launch: start the kernel with "
               "cudaLaunchCooperativeKernel");
        abandon_grid(cudaErrorLaunchFailure);
    }
    suspend(b, at_grid, b.at_grid, at);
}

// ---- blocks
static unsigned blocks_of_cluster(const Grid& g) {
    return g.cluster.x * g.cluster.y * g.cluster.z;
}
// The place of a block, or of a block of a cluster: these are numbered cluster by cluster.
static uint3 block_index(const Grid& g, unsigned long long number) {
    unsigned many = blocks_of_cluster(g);
    if (many == 1)
        return {unsigned(number % g.grid.x), unsigned(number / g.grid.x % g.grid.y),
                unsigned(number / g.grid.x / g.grid.y)};
    unsigned rank = unsigned(number % many);
    unsigned long long group = number / many;
    unsigned across = g.grid.x / g.cluster.x, down = g.grid.y / g.cluster.y;
    return {unsigned(group % across) * g.cluster.x + rank % g.cluster.x,
            unsigned(group / across % down) * g.cluster.y + rank / g.cluster.x % g.cluster.y,
            unsigned(group / across / down) * g.cluster.z + rank / g.cluster.x / g.cluster.y};
}
static void begin_block(Grid& g, Block& b, unsigned long long number) {
    unsigned many = blocks_of_cluster(g);
    if (shuffled)
        number = (number / many * g.stride + g.offset) % (g.blocks / many) * many + number % many;
    b.grid = &g;
    b.index = block_index(g, number);
    b.linear = b.index.x + (unsigned long long)g.grid.x * (b.index.y + g.grid.y * b.index.z);
    b.cluster = nullptr;
    b.left_cluster = false;
    b.async_ready = false;
    b.finished = b.generation = 0;
    b.barrier = b.ready = b.ways = b.active = b.at_grid = List();
    b.mixed_warned = false;
    b.hot = Hot();
    b.hot.block = &b;
    b.hot.count = g.block.x * g.block.y * g.block.z;
    b.hot.shared = b.memory;
    b.hot.shared_bytes = unsigned(static_shared_max + dynamic_shared_max);
    size_t step = uses_asm ? 1024 : 16;  // swizzles look at the addresses' bits
    b.hot.dynamic_shared = b.memory + b.hot.shared_bytes - (g.shared + step - 1) / step * step;
    if (shuffled) {
        b.order.resize(b.hot.count);
        std::iota(b.order.begin(), b.order.end(), 0u);
        for (unsigned i = b.hot.count; i > 1; --i)
            std::swap(b.order[i - 1], b.order[random_below(i)]);
        b.hot.order = b.order.data();
    }
    if (checking)
        checks_begin_block(b);
}

// Runs the block until all its threads have ended or none can go on.
enum Outcome { ended, spinning_threads, waits_for_grid, stuck, failed };
static void set_dynamic_pointers(void* p);
static void checks_end_turn(Block& b) {
    if ((!hot.tracking || b.finished == hot.count) && !b.grid->error.load())
        checks_end_block(b);
}
static Outcome run_block(Block& b) {
    Grid& g = *b.grid;
    Hot outer = hot;
    uint3 outer_thread = threadIdx, outer_block = blockIdx;
    dim3 outer_block_dim = blockDim, outer_grid_dim = gridDim;
    hot = b.hot;
    hot.concurrent = g.concurrent.load(std::memory_order_relaxed);
    blockIdx = b.index;
    blockDim = g.block;
    gridDim = g.grid;
    b.ready.append(b.ways);
    b.moved = false;
    unsigned finished_before = b.finished;
    set_dynamic_pointers(hot.dynamic_shared);
    if (b.cluster && !hot.tracking)
        begin_tracking(b);  // its blocks' threads wait for each other
    void* first = next_stack(b);
    cuda_cpu_switch(&b.base, first);
    if (b.async_ready && (!hot.tracking || b.finished == hot.count) && !b.grid->error.load())
        async_end(b);
    if (checking)
        checks_end_turn(b);
    b.moved |= b.finished != finished_before;
    b.hot = hot;
    hot = outer;
    threadIdx = outer_thread;
    blockIdx = outer_block;
    blockDim = outer_block_dim;
    gridDim = outer_grid_dim;
    if (hot.block)
        set_dynamic_pointers(hot.dynamic_shared);
    if (g.error.load(std::memory_order_relaxed))
        return failed;
    if (!b.hot.tracking || b.finished == b.hot.count)
        return ended;
    if (b.ways.head)
        return spinning_threads;
    if (b.at_grid.size && b.at_grid.size + b.finished == b.hot.count)
        return waits_for_grid;
    return stuck;
}

static void end_block(Grid& g, Block* b) {
    if (!b->printed.empty()) {
        std::lock_guard<std::mutex> l(g.lock);
        g.printed.emplace_back(b->linear, std::move(b->printed));
        b->printed.clear();
    }
    worker.free_blocks.push_back(b);
}
static void drop_block(Grid& g, Block* b) {  // after an error: its threads are not run to their end
    if (b->hot.tracking)
        for (unsigned i = 0; i < b->hot.count; ++i)
            if (b->threads[i].wait != not_waiting)
                give_fiber(b->threads[i].fiber);
    end_block(g, b);
}

static const char* operation(const Thread& t) {
    switch (t.wait) {
        case at_barrier:
            return "__syncthreads";
        case at_meeting:
            return t.meeting->name;
        case at_grid:
            return "grid.sync";
        case in_wait_loop:
            return "a loop that waits";
        case at_mbarrier:
            return "mbarrier.try_wait";
        case at_named:
            return "bar.sync";
        case at_cluster:
            return "barrier.cluster.wait";
        case at_wgmma:
            return "wgmma.wait_group";
        default:
            return "a wait";
    }
}
static bool same_wait(const Thread& a, const Thread& b) {
    return a.wait == b.wait && a.at.line == b.at.line;
}
static void report_deadlock(Block& b) {
    std::string where;
    unsigned shown = 0;
    for (unsigned i = 0; i < b.hot.count; ++i) {
        Thread& t = b.threads[i];
        if (t.wait == not_waiting)
            continue;
        bool said = false;
        for (unsigned j = 0; j < i && !said; ++j)
            said = same_wait(b.threads[j], t);
        if (said || ++shown > 6)
            continue;
        unsigned n = 0;
        for (unsigned j = i; j < b.hot.count; ++j)
            n += same_wait(b.threads[j], t);
        char line[256];
        snprintf(line, sizeof line, "\n    %u thread%s, first %s, at %s() in line %d", n,
                 n == 1 ? "" : "s", index_text(t.index), operation(t), t.at.line);
        where += line;
    }
    Site at = {"", 0};
    for (unsigned i = 0; i < b.hot.count && !at.line; ++i)
        if (b.threads[i].wait != not_waiting)
            at = b.threads[i].at;
    if (b.async_ready)
        where += barriers_text(b);
    report("deadlock", at,
           "block %s of kernel `%s` can never go on: its threads wait for each other%s%s",
           index_text(b.index), b.grid->work.kernel->name,
           b.async_ready ? ", or for what never comes" : " at different places", where.c_str());
}

static double seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// ---- workers
std::atomic<bool> stop_requested{false};
typedef std::vector<std::pair<Block*, bool>>
    Live;  // blocks that wait for others; true: at the grid's barrier

// All threads that are left wait in loops for values that nobody stores: true if so for two seconds
// on all cores. A kernel of another device may have to be launched first: that is given ten.
struct Stall {
    Grid& g;
    unsigned long long seen = 0;
    double since = 0;
    bool idle = false;
    explicit Stall(Grid& grid) : g(grid) {
        g.workers.fetch_add(1);
    }
    ~Stall() {
        moving();
        g.workers.fetch_sub(1);
    }
    void moving() {
        since = 0;
        if (idle)
            g.idle.fetch_sub(1);
        idle = false;
    }
    bool for_ever() {
        unsigned long long now =
            g.moves.load() + g.done.load() + g.cursor.load() + g.generation.load();
        if (now != seen) {
            seen = now;
            moving();
            return false;
        }
        if (!since)
            since = seconds();
        if (!idle && seconds() - since > (device_count() > 1 ? 10 : 2)) {
            idle = true;
            g.idle.fetch_add(1);
        }
        return idle && g.idle.load() == g.workers.load();
    }
};
static void report_stall(Grid& g, const Live& live) {
    for (auto& l : live)
        for (unsigned i = 0; i < l.first->hot.count; ++i) {
            const Thread& t = l.first->threads[i];
            int none = 0;
            if (t.wait != in_wait_loop ||
                !g.error.compare_exchange_strong(none, cudaErrorLaunchTimeout))
                continue;
            report("deadlock", t.at,
                   "all threads of kernel `%s` that have not ended wait, and nothing can change "
                   "that. Block %s, "
                   "thread %s waits in this loop for a value that nobody stores%s. (Host code goes "
                   "on only when the kernel has ended%s)",
                   g.work.kernel->name, index_text(l.first->index), index_text(t.index),
                   g.cursor.load() < g.blocks ? "; perhaps a block would that has not started: "
                                                "those that have fill the device"
                                              : "",
                   checking && device_count() > 1
                       ? ". With --check one kernel runs at a time: those of several devices that "
                         "wait for each other run without it"
                       : "");
            return;
        }
}

// ---- clusters: all blocks of one run on one core, in turn
static bool can_run(const Block& b) {
    if (b.left_cluster)
        return false;
    return b.hot.next < b.hot.count || b.ready.head || b.ways.head || b.active.head ||
           can_deliver(b);
}
static void begin_cluster(Grid& g, unsigned long long number, Live& live) {
    Cluster* c = new Cluster;
    c->size = g.cluster;
    for (unsigned rank = 0; rank < blocks_of_cluster(g); ++rank) {
        Block* b = take_block();
        begin_block(g, *b, number + rank);
        b->cluster = c;
        b->cluster_rank = rank;
        c->blocks.push_back(b);
        live.emplace_back(b, false);
    }
}
static bool has_ended(const Cluster& c) {
    return std::all_of(c.blocks.begin(), c.blocks.end(), [](Block* b) { return b->left_cluster; });
}
static void end_clusters(Grid& g, Live& live) {
    for (size_t i = 0; i < live.size();) {
        Cluster* c = live[i].first->cluster;
        if (!c || !has_ended(*c)) {
            ++i;
            continue;
        }
        for (Block* b : c->blocks) {
            end_block(g, b);
            g.done.fetch_add(1);
        }
        live.erase(std::remove_if(live.begin(), live.end(),
                                  [c](auto& l) { return l.first->cluster == c; }),
                   live.end());
        delete c;
    }
}
// Nobody has moved: a cluster all of whose blocks are stuck never will.
static bool stuck_cluster(Grid& g, const Live& live) {
    for (auto& l : live) {
        Cluster* c = l.first->cluster;
        if (!c || l.second ||
            std::any_of(c->blocks.begin(), c->blocks.end(), [](Block* b) { return can_run(*b); }))
            continue;
        for (Block* b : c->blocks)
            if (!b->left_cluster)
                report_deadlock(*b);
        g.error = cudaErrorLaunchTimeout;
        return true;
    }
    return false;
}

static void work(Grid& g, void (*call_helpers)(Grid&)) {
    Live live;
    Stall stall(g);
    const unsigned long long resident = 65536 / (g.block.x * g.block.y * g.block.z);
    double start = call_helpers ? seconds() : 0;
    for (;;) {
        if (stop_requested.load(std::memory_order_relaxed))
            g.error = cudaErrorLaunchFailure;
        if (g.error.load()) {
            for (auto& l : live)
                drop_block(g, l.first);
            return;
        }
        bool progress = false;
        for (size_t i = 0; i < live.size();) {
            Block* b = live[i].first;
            if (live[i].second) {
                if (b->grid_generation == g.generation.load()) {
                    ++i;
                    continue;
                }
                b->ready.append(b->at_grid);
                live[i].second = false;
            }
            if (b->cluster && !can_run(*b)) {
                ++i;
                continue;
            }
            Outcome o = run_block(*b);
            progress |= b->moved || o != spinning_threads;
            if (o == failed)
                break;
            if (b->cluster && (o == ended || o == stuck)) {
                b->left_cluster = o == ended;
                ++i;
                continue;
            }
            if (o == ended) {
                end_block(g, b);
                g.done.fetch_add(1);
                live.erase(live.begin() + long(i));
                continue;
            }
            if (o == stuck) {
                report_deadlock(*b);
                g.error = cudaErrorLaunchTimeout;
                break;
            }
            if (o == waits_for_grid) {
                b->grid_generation = g.generation.load();
                live[i].second = true;
                g.waiting_blocks.fetch_add(1);
            }
            ++i;
        }
        if (g.error.load())
            continue;
        unsigned many = blocks_of_cluster(g);
        if (many > 1)
            end_clusters(g, live);
        if (call_helpers && g.cursor.load(std::memory_order_relaxed) < g.blocks &&
            seconds() - start > 20e-6) {
            g.concurrent = true;  // between two blocks: no atomic operation of ours is under way
            call_helpers(g);
            call_helpers = nullptr;
        }
        bool room = live.size() < resident && g.cursor.load(std::memory_order_relaxed) < g.blocks;
        unsigned long long number = room ? g.cursor.fetch_add(many) : g.blocks;
        if (number < g.blocks && many > 1) {
            begin_cluster(g, number, live);
            continue;
        }
        if (number < g.blocks) {
            Block* b = take_block();
            begin_block(g, *b, number);
            Outcome o = run_block(*b);
            if (o == ended) {
                end_block(g, b);
                g.done.fetch_add(1, std::memory_order_relaxed);
            } else {
                if (o == stuck) {
                    report_deadlock(*b);
                    g.error = cudaErrorLaunchTimeout;
                }
                if (o == waits_for_grid) {
                    b->grid_generation = g.generation.load();
                    g.waiting_blocks.fetch_add(1);
                }
                live.emplace_back(b, o == waits_for_grid);
            }
            continue;
        }
        if (live.empty())
            return;
        unsigned long long waiting = g.waiting_blocks.load(), done = g.done.load();
        if (waiting && waiting + done == g.blocks) {
            if (done) {
                int none = 0;
                if (g.error.compare_exchange_strong(none, cudaErrorLaunchTimeout))
                    report("deadlock", live[0].first->threads[0].at,
                           "grid.sync() was reached by %llu of %llu blocks only; the others have "
                           "ended",
                           waiting, g.blocks);
                continue;
            }
            if (g.waiting_blocks.compare_exchange_strong(waiting, 0))
                g.generation.fetch_add(1);
            continue;
        }
        if (progress) {
            stall.moving();
        } else if (many > 1 && stuck_cluster(g, live)) {
            continue;
        } else if (stall.for_ever()) {
            report_stall(g, live);
        } else {
            std::this_thread::yield();
        }
    }
}

struct Helpers {
    std::mutex lock, busy;
    std::condition_variable wake, idle;
    Grid* grid = nullptr;
    unsigned long long turn = 0;
    int active = 0, started = 0;
    pid_t owner = 0;
    std::vector<pthread_t> ids;
};
static Helpers* helpers = new Helpers;  // never destroyed: its threads may outlive main

static int cores() {
    static int n = [] {
        const char* e = std::getenv("CUDA_CPU_THREADS");
        int v = e ? std::atoi(e) : int(std::thread::hardware_concurrency());
#ifdef __linux__
        cpu_set_t set;
        if (!e && sched_getaffinity(0, sizeof set, &set) == 0)
            v = CPU_COUNT(&set);
#endif
        return checking || shuffled || v < 1 ? 1 : v > 256 ? 256 : v;
    }();
    return n;
}

static void helper_main() {
    catch_signals();
    Helpers& h = *helpers;
    unsigned long long seen = 0;
    std::unique_lock<std::mutex> l(h.lock);
    for (;;) {
        h.wake.wait(l, [&] { return h.grid && h.turn != seen; });
        seen = h.turn;
        Grid* g = h.grid;
        ++h.active;
        l.unlock();
        work(*g, nullptr);
        return_slabs();
        l.lock();
        if (--h.active == 0)
            h.idle.notify_all();
    }
}

static void call_helpers(Grid& g) {
    Helpers& h = *helpers;
    std::lock_guard<std::mutex> l(h.lock);
    if (h.owner != getpid()) {  // the first time, or in a fork
        h.owner = getpid();
        h.started = h.active = 0;
        h.ids.clear();
    }
    while (h.started < cores() - 1) {
        std::thread t(helper_main);
        h.ids.push_back(t.native_handle());
        t.detach();
        ++h.started;
    }
    h.grid = &g;
    ++h.turn;
    h.wake.notify_all();
}

void signal_helpers(int number) {  // from a signal handler: no lock is taken
    for (pthread_t t : helpers->ids)
        pthread_kill(t, number);
}

cudaError_t run_grid(Grid& g) {
    unsigned long long groups = g.blocks / blocks_of_cluster(g);
    if (shuffled && groups > 1) {
        g.offset = seed % groups;
        g.stride = (groups / 2 + seed % groups) | 1;
        while (std::gcd(g.stride, groups) != 1)
            ++g.stride;
    }
    if (checking)
        checks_begin_grid(g);
    if (g.inner)
        g.concurrent = hot.concurrent;
    std::unique_lock<std::mutex> alone(helpers->busy, std::defer_lock);
    bool share = !g.inner && g.blocks > 1 && cores() > 1 && alone.try_lock();
    work(g, share ? call_helpers : nullptr);
    return_slabs();
    if (share) {
        std::unique_lock<std::mutex> l(helpers->lock);
        helpers->grid = nullptr;
        helpers->idle.wait(l, [] { return helpers->active == 0; });
    }
    std::stable_sort(g.printed.begin(), g.printed.end(),
                     [](auto& a, auto& b) { return a.first < b.first; });
    for (auto& p : g.printed)
        keep_printed(p.second);
    return cudaError_t(g.error.load());
}

void abandon_grid(cudaError_t error) {
    Block& b = *hot.block;
    int none = 0;
    b.grid->error.compare_exchange_strong(none, int(error));
    give_fiber(hot.fiber);
    void* nowhere;
    cuda_cpu_switch(&nowhere, b.base);
    __builtin_unreachable();
}

bool on_host_stack(
    const void* p) {  // of the thread that launched: all stacks of kernels lie elsewhere
#ifdef __linux__
    static thread_local char *low = nullptr, *high = nullptr;
    if (!high) {
        pthread_attr_t a;
        size_t size = 0;
        void* start = nullptr;
        pthread_getattr_np(pthread_self(), &a);
        pthread_attr_getstack(&a, &start, &size);
        pthread_attr_destroy(&a);
        low = static_cast<char*>(start);
        high = low + size;
    }
    return p >= low && p < high;
#else
    (void)p;
    return false;
#endif
}

// ---- shared memory
static std::vector<std::pair<unsigned, unsigned>>& shared_variables() {
    static auto* v = new std::vector<std::pair<unsigned, unsigned>>;
    return *v;
}
bool inside_shared_variable(size_t offset, size_t bytes) {
    for (auto& v : shared_variables())
        if (offset >= v.first && offset + bytes <= v.first + v.second)
            return true;
    return false;
}
void place_shared(unsigned* place, unsigned bytes, Site at, unsigned aligned) {
    static std::mutex lock;
    static unsigned next = 256;
    std::lock_guard<std::mutex> l(lock);
    Kernel& k = *hot.block->grid->work.kernel;
    if (*place)
        return;
    if (next + bytes + 256 > static_shared_max || k.placed_shared + bytes > 49152) {
        report("too-much-shared-memory", at,
               "the __shared__ variables of kernel `%s` take %u bytes; a block has at most 49152 "
               "bytes of them (more is "
               "possible with extern __shared__ and cudaFuncSetAttribute)",
               k.name, k.placed_shared + bytes);
        abandon_grid(cudaErrorInvalidConfiguration);
    }
    if (aligned > 128)
        next = (next + aligned - 1) / aligned * aligned;
    k.placed_shared += bytes;
    k.static_shared = std::max(k.static_shared, k.placed_shared);
    *place = next;
    if (checking)
        shared_variables().emplace_back(next, bytes);
    next += (bytes + 127) / 128 * 128;
    if (checking)
        next += 128;
}

static std::vector<void (*)(void*)>& dynamic_pointers() {
    static auto* v = new std::vector<void (*)(void*)>;
    return *v;
}
DynamicPointer::DynamicPointer(void (*set)(void*)) {
    dynamic_pointers().push_back(set);
}
static void set_dynamic_pointers(void* p) {
    for (auto set : dynamic_pointers())
        set(p);
}

void* dynamic_shared() {
    if (!hot.block)
        return nullptr;
    hot.block->grid->work.kernel->uses_dynamic_shared = true;
    return hot.dynamic_shared;
}

void fence(int scope) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (in_kernel()) {
        if (checking)
            checks_fence(scope);
        hot.spin += 200;  // fences stand in loops that wait for another block
        spinning();
    }
}
}  // namespace cuda_cpu
