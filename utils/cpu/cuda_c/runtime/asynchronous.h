// What a block has under way beside its threads: copies, barriers in shared memory, products of
// warp groups. A block gets an Async when it first uses one of them.
//
// Copies are honest: they arrive as late as the rules allow. What a barrier counts in (bulk copies,
// tensor copies, st.async) arrives when all threads of the block wait, and somebody for that
// barrier; what a thread waits for by itself (cp.async, bulk stores, wgmma) when it waits.
// CUDA_CPU_SEED chooses the order.
#pragma once
#include <array>
#include <map>
#include "../include/detail/ptx/declarations.h"
#include "internal.h"

namespace cuda_cpu {
typedef std::vector<unsigned> Clock;  // of each thread (and barrier): known up to when
typedef std::map<unsigned long long, unsigned> Peers;  // of each block of the cluster: likewise

// mbarrier: its state lies here; the 8 bytes in shared memory hold only a mark.
struct MBarrier {
    unsigned expected, pending;  // arrivals of a phase; those that are missing
    long long bytes;  // that are announced and have not come
    unsigned phase;  // how many are over
    unsigned number;  // among the block's
    Site at;  // of its initialisation
    List waiting;
    bool polled;  // by test_wait
    Clock arrived, over;  // what those know who have arrived; of the last phase that is over
    Peers peers_arrived, peers_over;  // likewise, of other blocks of the cluster
    // Who initialised it, and when: for the slow checks.
    unsigned born_generation, born_meetings, born_when;
    unsigned short born_by;
};

// A copy that a barrier counts in, on its way to this block's shared memory.
struct Flying {
    char* to;
    size_t bytes;
    MBarrier* barrier;
    char* barrier_place;
    unsigned phase;  // of the barrier, when the copy began
    Site at;
    std::function<void()> arrive;
};

// A copy that its thread waits for. read: takes what it copies from shared memory.
struct Waited {
    const char* shared;  // the part in shared memory
    size_t bytes;
    bool from_shared, was_read;
    Site at;
    std::function<void()> read, write;
};
struct Groups {
    std::vector<Waited> open;
    std::vector<std::vector<Waited>> closed;
};

// One wgmma of a warp group, from its first thread's call to the wait.
struct Product {
    ptx::WgmmaShape shape;
    unsigned long long a, b;  // descriptors
    Site at;
    bool early;  // what it read had not come: it has read it already
    const char *low, *high;  // what it reads lies between
    std::vector<float> left, right;  // of an early one: what was there
    struct Part {
        unsigned a[4];
        bool add, came;
        float* sums;  // where they lie side by side
        std::vector<float*> places;  // else each
    };
    std::vector<Part> parts;  // of the 128 threads
};
struct WarpGroup {
    std::vector<Product> products;  // not yet done
    unsigned long long first = 0;  // number of the first of them
    unsigned issued[128] = {};  // by each thread
    std::vector<unsigned> groups[128];  // of each thread: products up to each commit
    bool fenced[128] = {};
    List waiting;
    unsigned wanted[128];
    bool waits[128] = {};
};

// Ranges of shared memory that copies fill or read, for the slow checks: start -> ...
struct Moving {
    size_t bytes;
    Site at;
    unsigned swizzle;
    Peers peers;  // what the block knew that began it for another one
};
typedef std::map<const char*, Moving> Ranges;

struct NamedBarrier {
    List waiting;
    unsigned arrived = 0, expected = 0;
    Site at;
    std::vector<unsigned> came;
};

struct ClusterArrival {
    unsigned phase = ~0u, when = 0;
};
struct ClusterBlock {  // for the slow checks
    std::vector<std::array<ClusterArrival, 4>> arrivals;  // of each thread, by phase
    unsigned waited = ~0u;  // the last phase that it has waited for
    Peers peers;  // what it knows of the others
};
struct Cluster {
    std::vector<Block*> blocks;
    dim3 size;
    unsigned arrived = 0, phase = 0;  // threads at barrier.cluster; how many are over
    List waiting;
    std::vector<ClusterBlock> known;  // of each block
};
struct Async {
    std::map<char*, MBarrier> barriers;
    std::vector<Flying> flying;
    std::vector<Groups> copies, stores;  // cp.async and bulk copies of each thread
    NamedBarrier named[16 + 16];  // those of PTX, those of tiles of several warps
    std::vector<WarpGroup> groups;
    std::vector<std::pair<char*, unsigned>> failed;  // of each thread: its last wait in vain
    std::vector<unsigned> cluster_phase;  // of each thread that has arrived; ~0: has not
    List at_cluster;
    std::vector<Clock> known;  // of each thread, for the slow checks
    std::vector<unsigned> proxy_fence;
    Ranges arriving, leaving, boxes;
};

Async& async_of(Block& b);  // of a block that runs
Async& own_async();
void async_end(Block& b);  // all its threads have ended
bool can_deliver(const Block& b);
void deliver(Block& b);  // nobody can go on: a copy arrives
void wait_in(List& list, Wait wait, Site at);
void wake(Block& b, List& list);
void fly(Block& b, Flying copy);  // begins
[[noreturn]] void refuse(const char* kind, Site at, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
MBarrier& barrier_at(char* p, Block& b, Site at, const char* what);
void complete_bytes(Block& b, MBarrier& m, size_t bytes);
std::string barriers_text(const Block& b);
unsigned random_below(unsigned n);
// Writes or reduces elements in global memory.
void store_elements(char* to, const char* from, size_t bytes, ptx::Reduce how,
                    ptx::ElementType element);

// ---- shared memory by its address (window.cpp)
struct InShared {
    char* p;
    Block* block;
};
InShared find_shared(unsigned long long address, Site at);
unsigned address_of(const Block& b, const char* p);
char* shared_at(const Block& b, unsigned offset);  // address without a rank
extern thread_local Site engine_at;  // what is being done for a copy: a fault is told there

// ---- clusters.cpp
void cluster_thread_ended(Block& b);

// ---- checks_async.cpp, linked in for --check
void checks_learn(Clock& to, const Clock& from);
void checks_born(const Block& b, MBarrier& m);  // by the running thread
void checks_uses_barrier(const Block& b, const MBarrier& m, Site at, const char* what);
void checks_arrive(Block& b, MBarrier& m);  // the running thread arrives
void checks_phase_over(MBarrier& m);
void checks_waited(Block& b, const MBarrier& m);  // the running thread knows that a phase is over
void checks_meet(Block& b, const unsigned* threads, unsigned n);  // they have met
void checks_proxy_fence();
void checks_copy_begins(Block& to, const char* p, size_t bytes, Site at);
void checks_box(Block& to, const char* p, size_t bytes, unsigned swizzle, unsigned row, Site at);
void checks_copy_arrives(Block& to, const char* p, size_t bytes, const MBarrier* m, Site at);
void checks_store_read(const char* p, size_t bytes, Site at);
void checks_engine_reads(const char* p, size_t bytes, Site at, const char* what);
void checks_global(const char* p, size_t bytes, bool writes, bool atomic, Site at);
void checks_async_access(const char* p, unsigned size, bool writes, const void* code);
bool product_reads(const Block& b, const Product& p, const char* start, size_t bytes);
void checks_tile_swizzle(Block& b, const Product& p);
void checks_product_done(Block& b, const Product& p);
void checks_cluster_met(Block& b);
void checks_cluster_arrives(Block& b, unsigned phase);
void checks_cluster_waited(Block& b, unsigned phase);
void checks_peer_arrives(const Block& from, MBarrier& m);  // at another block's barrier
void checks_peers_waited(Block& b, const MBarrier& m);
void checks_lanes_met(Block& b, unsigned warp, unsigned lanes);
void check_access(const char* p, unsigned size, bool writes, Site at);  // of the running thread
void checks_sums(const char* p, const void* code);
}  // namespace cuda_cpu
