// Blocks: their beginning, a turn of one on a core, their end, and what keeps one for ever.
#include <numeric>
#include "scheduler.h"

namespace cuda_cpu {
unsigned blocks_of_cluster(const Grid& g) {
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
void begin_block(Grid& g, Block& b, unsigned long long number) {
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
    b.hot.spin = first_spin();
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

static void checks_end_turn(Block& b) {
    if ((!hot.tracking || b.finished == hot.count) && !b.grid->error.load())
        checks_end_block(b);
}
Outcome run_block(Block& b) {
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
    b.moved = b.advanced = false;
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
    b.advanced |= b.finished != finished_before;
    b.moved |= b.advanced;
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

void end_block(Grid& g, Block* b) {
    if (!b->printed.empty()) {
        std::lock_guard<std::mutex> l(g.lock);
        g.printed.emplace_back(b->linear, std::move(b->printed));
        b->printed.clear();
    }
    give_block(b);
}
void drop_block(Grid& g, Block* b) {  // after an error: its threads are not run to their end
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
void report_deadlock(Block& b) {
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
}  // namespace cuda_cpu
