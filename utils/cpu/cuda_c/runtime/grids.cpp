// Grids: a worker (one for each core) takes one block after another; the blocks of a cluster run in
// turn on one core. Who waits for what never comes is told here.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <condition_variable>
#include <numeric>
#include <thread>
#include <time.h>
#include "scheduler.h"

namespace cuda_cpu {
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
// on all cores. A kernel of another device may have to be launched first: that is given ten. From
// one look to the next counts as a tenth at most: the machine itself may have stood still.
struct Stall {
    Grid& g;
    unsigned long long seen = 0;
    double last = 0, waited = 0;
    bool idle = false;
    explicit Stall(Grid& grid) : g(grid) {
        g.workers.fetch_add(1);
    }
    ~Stall() {
        moving();
        g.workers.fetch_sub(1);
    }
    void moving() {
        last = waited = 0;
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
        double now_seconds = seconds();
        waited += last ? std::min(now_seconds - last, 0.1) : 0;
        last = now_seconds;
        if (!idle && waited > (device_count() > 1 ? 10 : 2)) {
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

// ---- a program that takes long says so once, and how far it is
bool tells_how_far = false;  // set in programs: Python's libraries are silent
static std::atomic<unsigned> launches{0};
static double processor_seconds() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
static void tell_how_far(const Grid& g) {
    const double long_time = 5;
    static const double start = seconds();
    if (seconds() - start < long_time || processor_seconds() < long_time)
        return;
    tells_how_far = false;
    unsigned long long begun = std::min(g.cursor.load(), g.blocks);
    dim3 grid = g.grid, block = g.block;
    note(
        g.at,
        "this program has computed for %.0f seconds and goes on: it is at its launch number %u, of "
        "kernel `%s` with (%u,%u,%u) blocks of (%u,%u,%u) threads, of which %.0f %% have begun. "
        "Here a processor plays the GPU: for a quick run make the problem a hundred times "
        "smaller [slow]",
        processor_seconds(), launches.load(), g.work.kernel->name, grid.x, grid.y, grid.z, block.x,
        block.y, block.z, 100.0 * double(begun) / double(g.blocks));
}

static void work(Grid& g, void (*call_helpers)(Grid&)) {
    const bool first = g.workers.load() == 0;
    unsigned turns = 0;
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
        bool looks = first && tells_how_far && turns++ && g.cursor.load() < g.blocks;
        if (looks && (turns % 64 == 0 || g.blocks < 4096))
            tell_how_far(g);
        bool progress = false;  // a thread ended, left a loop that waits, or gave way elsewhere
        bool advanced = false;  // a thread did more than to look whether it may go on
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
            advanced |= b->advanced || o != spinning_threads;
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
        if (!advanced)
            std::this_thread::yield();  // what they wait for may need this core
        if (progress) {
            stall.moving();
        } else if (many > 1 && stuck_cluster(g, live)) {
            continue;
        } else if (stall.for_ever()) {
            report_stall(g, live);
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
    unsigned number = launches.load(std::memory_order_relaxed) + 1;
    launches.store(number, std::memory_order_relaxed);  // two host threads may count one only
    if (number % 256 == 0 && tells_how_far)
        tell_how_far(g);
    if (checking)
        checks_begin_grid(g);
    // a kernel of another host thread, or device, may use the same memory; checked, it waits
    g.concurrent = g.inner ? hot.concurrent : !checking;
    std::unique_lock<std::mutex> alone(helpers->busy, std::defer_lock);
    bool share = !g.inner && g.blocks > 1 && cores() > 1 && alone.try_lock();
    work(g, share ? call_helpers : nullptr);
    return_slabs();
    if (checking)
        settle_unwritten();
    if (share) {
        std::unique_lock<std::mutex> l(helpers->lock);
        helpers->grid = nullptr;
        helpers->idle.wait(l, [] { return helpers->active == 0; });
    }
    std::stable_sort(g.printed.begin(), g.printed.end(),
                     [](auto& a, auto& b) { return a.first < b.first; });
    for (auto& p : g.printed) {
        if (g.inner)  // behind what the block that launched it has printed
            hot.block->printed += p.second;
        else
            keep_printed(p.second);
    }
    return cudaError_t(g.error.load());
}
}  // namespace cuda_cpu
