// Meetings beside __syncthreads: barriers with a number, barriers of a cluster, elect.sync. Source:
// PTX ISA, "barrier", "barrier.cluster", "elect.sync".
#include "../include/detail/warp.h"
#include "asynchronous.h"

namespace cuda_cpu {
static unsigned threads_of(const Cluster& c) {
    unsigned n = 0;
    for (const Block* b : c.blocks)
        n += b->hot.count - (b->left_cluster ? b->hot.count : b->ended_threads());
    return n;
}
static void end_phase_if_complete(Cluster& c) {
    if (!c.arrived || c.arrived < threads_of(c))
        return;
    c.arrived = 0;
    ++c.phase;
    for (Block* b : c.blocks)
        if (b->async && b->async_ready)
            wake(*b, b->async->at_cluster);
}
void cluster_thread_ended(Block& b) {
    if (b.async && b.async_ready) {
        unsigned mine = b.async->cluster_phase[hot.tid];
        if (mine == b.cluster->phase)
            --b.cluster->arrived;
    }
    end_phase_if_complete(*b.cluster);
}

namespace ptx {
void cluster_arrive(Site at) {
    Block& b = *hot.block;
    Async& a = own_async();
    if (!b.cluster)
        return;
    Cluster& c = *b.cluster;
    if (a.cluster_phase[hot.tid] == c.phase)
        refuse("cluster", at,
               "barrier.cluster.arrive for the second time without barrier.cluster.wait");
    a.cluster_phase[hot.tid] = c.phase;
    if (checking)
        checks_cluster_arrives(b, c.phase);
    ++c.arrived;
    end_phase_if_complete(c);
}
void cluster_wait(Site at) {
    Block& b = *hot.block;
    if (!b.cluster)
        return;
    unsigned mine = own_async().cluster_phase[hot.tid];
    if (mine == ~0u)
        refuse("cluster", at, "barrier.cluster.wait without barrier.cluster.arrive");
    while (b.cluster->phase == mine)
        wait_in(b.async->at_cluster, at_cluster, at);
    b.async->cluster_phase[hot.tid] = ~0u;
    if (checking) {
        checks_cluster_met(b);
        checks_cluster_waited(b, mine);
    }
}

// 0 rank, 1 count; 2 to 4 the block's place in the cluster, 5 to 7 the cluster's size, 8 to 10 the
// cluster's number, 11 to 13 how many clusters there are; 14: was it asked for?
u32 cluster_special(int which) {
    Block& b = *hot.block;
    dim3 size = b.cluster ? b.cluster->size : dim3(1);
    uint3 all = size;
    uint3 grid = gridDim;
    unsigned s[3] = {all.x, all.y, all.z};
    unsigned i[3] = {blockIdx.x, blockIdx.y, blockIdx.z};
    unsigned g[3] = {grid.x, grid.y, grid.z};
    if (which == 0)
        return b.cluster ? b.cluster_rank : 0;
    if (which == 1)
        return s[0] * s[1] * s[2];
    if (which == 14)
        return b.cluster != nullptr;
    int axis = (which - 2) % 3;
    switch ((which - 2) / 3) {
        case 0:
            return i[axis] % s[axis];
        case 1:
            return s[axis];
        case 2:
            return i[axis] / s[axis];
        default:
            return g[axis] / s[axis];
    }
}

static void meet_at(u32 number, unsigned expected, bool waits, Site at) {
    Block& b = *hot.block;
    NamedBarrier& n = own_async().named[number];
    if (n.arrived && n.expected != expected)
        refuse("named-barrier", at,
               "threads meet at barrier %u that expect different numbers of them: %u here, %u in "
               "line %d",
               number, expected, n.expected, n.at.line);
    n.expected = expected;
    n.at = at;
    n.came.push_back(hot.tid);
    if (++n.arrived < std::min(expected, hot.count)) {
        if (waits)
            wait_in(n.waiting, at_named, at);
        return;
    }
    if (checking)
        checks_meet(b, n.came.data(), unsigned(n.came.size()));
    n.arrived = 0;
    n.came.clear();
    wake(b, n.waiting);
}

// bar.sync and bar.arrive. A thread that has ended no longer counts where all of a block meet.
void named_barrier(u32 number, u32 threads, bool waits, Site at) {
    if (number > 15)
        refuse("named-barrier", at, "barrier %u: a block has 16 of them, 0 to 15", number);
    if (threads % 32 || threads > (hot.count + 31) / 32 * 32 || (!waits && !threads))
        refuse("named-barrier", at,
               "a barrier of %u threads: a multiple of 32 is needed, at most the block's %u",
               threads, hot.count);
    if (number == 0 && waits && (threads == 0 || threads == hot.count)) {
        block_barrier(plain, 0, at);
        return;
    }
    meet_at(number, threads ? threads : hot.count, waits, at);
}
void tile_barrier(u32 tile, u32 threads, Site at) {
    unsigned first = tile * threads;
    meet_at(16 + tile, std::min(threads, hot.count - first), true, at);
}

u32 elect(u32 mask, bool* leader, Site at) {
    u32 first = u32(__builtin_ctz(lanes_present(mask, "elect.sync", at)));
    *leader = lane() == first;
    return first;
}
void keep_registers(u32 count, bool, Site at) {
    if (count % 8 || count < 24 || count > 256)
        refuse("setmaxnreg", at,
               "setmaxnreg: %u registers; multiples of 8 from 24 to 256 are "
               "possible",
               count);
}
}  // namespace ptx
}  // namespace cuda_cpu
