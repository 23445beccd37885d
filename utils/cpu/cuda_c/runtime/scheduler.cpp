// Threads. Those of a block run in turn on one stack as a plain loop; a thread that has to wait
// keeps that stack, and the loop goes on on another. Barriers and warp operations are places to
// wait at. Blocks are run by blocks.cpp, grids by grids.cpp.
#include <algorithm>
#include "scheduler.h"

CUDA_CPU_TLS uint3 threadIdx, blockIdx;
CUDA_CPU_TLS dim3 blockDim, gridDim;

namespace cuda_cpu {
CUDA_CPU_TLS Hot hot;
bool shuffled = std::getenv("CUDA_CPU_SEED") != nullptr;
unsigned long long seed = shuffled ? std::strtoull(std::getenv("CUDA_CPU_SEED"), nullptr, 10) : 0;

unsigned random_below(unsigned n) {
    static thread_local unsigned long long x = seed * 2 + 1;
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    return unsigned((x >> 33) % n);
}
static void carrier();

// From now on the block's threads are accounted for one by one.
void begin_tracking(Block& b) {
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
void fall_out_of_step(Block& b) {
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
Thread* current_thread() {
    Block& b = *hot.block;
    if (!hot.tracking)
        begin_tracking(b);
    return &b.threads[hot.tid];
}

// Threads that wait for "who is active here?" stand as far along as they could get: those at the
// same place and of the same warp are the active ones. A GPU does not promise that they still run
// together: with CUDA_CPU_APART each is drawn to one of two parts of its warp.
static bool apart = std::getenv("CUDA_CPU_APART") != nullptr;
static void settle_active(Block& b) {
    std::vector<Thread*> all;
    for (Thread* t = b.active.head; t; t = t->next)
        all.push_back(t);
    b.active = List();
    std::sort(all.begin(), all.end(), [](Thread* x, Thread* y) { return x->tid < y->tid; });
    std::vector<unsigned> part(all.size());
    for (size_t i = 0; i < all.size(); ++i)
        if (apart && all[i]->at.file[0])  // not those of in_step(), whose code is older than that
            part[i] = random_below(2);
    auto together = [&](size_t i, size_t j) {
        return all[j]->meeting == all[i]->meeting && part[j] == part[i];
    };
    for (size_t i = 0; i < all.size(); ++i) {
        unsigned mask = 0, warp = all[i]->tid >> 5;
        for (size_t j = i; j-- > 0 && all[j]->tid >> 5 == warp;)
            if (together(i, j))
                mask |= 1u << (all[j]->tid & 31);
        for (size_t j = i; j < all.size() && all[j]->tid >> 5 == warp; ++j)
            if (together(i, j))
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
static inline void* next_of(Block& b, const Thread* self) {
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

void* next_stack(Block& b, const Thread* self) {
    return next_of(b, self);
}

static void suspend(Block& b, Wait wait, List& list, Site at) {
    any_order(b);
    Thread* t = current_thread();
    sleep(t, wait, at);
    list.push(t);
    if (void* to = next_of(b, t))
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
    cuda_cpu_switch(&nowhere, next_of(b, nullptr));
    __builtin_unreachable();
}

void start_shuffled_thread() {
    unsigned t = hot.tid = hot.order[hot.next++];
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

const char* index_text(const uint3& i) {
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
unsigned long long barriers_without_all = 0;  // that some threads had left the kernel before
void complete_barrier(Block& b) {
    barriers_without_all += hot.left > 0;
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
    record_barrier(at);
    if (Thread* t = hot.in_step; t && kind == plain) {
        if (t == b.step.head) {
            b.step_at = at;
            hot.step_line = at.line;
        }
        if (hot.step_line == at.line) {
            if (t->next)
                return {t, go_in_step(t->next)};
            ++b.generation;
            barriers_without_all += hot.left > 0;
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
        // (a thread in step passes a barrier without a word, and each is to be recorded)
        if (!shuffled && !recording && b.ready.size + b.finished == hot.count) {
            b.step = b.ready;
            b.ready = List();
            hot.step_line = 0;
            return {t, go_in_step(b.step.head)};
        }
        void* to = next_of(b, t);
        return to ? Switch{t, to} : Switch{};
    }
    sleep(t, at_barrier, at);
    b.barrier.push(t);
    return {t, next_of(b, nullptr)};
}

// ---- other waits
unsigned active_lanes(const void* place, Site at) {
    if (!hot.block)
        return 1;
    Thread* t = current_thread();
    t->meeting = static_cast<Meeting*>(const_cast<void*>(place));
    suspend(*hot.block, at_active, hot.block->active, at);
    return unsigned(t->at.line);
}

unsigned first_spin() {
    // long ones as well: whoever waits for others is to be seen waiting
    return shuffled && random_below(2) ? longest_spin - random_below(4) : 0;
}
void give_way() {
    Block* b = hot.block;
    hot.spin = first_spin();
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
    hot.block->moved = hot.block->advanced = true;
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

void abandon_grid(cudaError_t error) {
    Block& b = *hot.block;
    int none = 0;
    b.grid->error.compare_exchange_strong(none, int(error));
    give_fiber(hot.fiber);
    void* nowhere;
    cuda_cpu_switch(&nowhere, b.base);
    __builtin_unreachable();
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
