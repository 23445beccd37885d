// What the runtime's own files share.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
#define CUDA_CPU_RUNTIME
#include "../include/cuda_runtime.h"

namespace cuda_cpu {
// ---- scheduler.cpp, blocks.cpp, grids.cpp: threads, blocks, grids
struct WarpState {
    unsigned exited = 0;  // lanes that have ended
    unsigned syncs = 0, shuffles = 0, products = 0;  // meetings so far
    Meeting* meetings = nullptr;
};
struct Grid;
struct Async;
struct Cluster;
struct Block {
    Grid* grid;
    uint3 index;
    Hot hot;  // while the block is not running
    void* base;  // the stack of whoever runs the block
    unsigned finished, generation;
    int barrier_result[2], barrier_value;
    List ready, barrier, ways, active, at_grid;
    List step;  // while its threads are in step (hot.in_step): all of them, in their order
    Site step_at;  // the barrier that those before the running thread have reached
    bool mixed_warned;
    bool moved;  // in its last turn a thread ended, left a loop that waits, or gave way elsewhere
    bool advanced;  // likewise, but no thread that only gave way
    unsigned grid_generation;
    unsigned check_grid;  // number of the launch, for the slow checks
    std::vector<Thread> threads;
    std::vector<WarpState> warps;
    std::vector<unsigned> order;
    std::vector<Fiber*> fibers;  // stacks that its waiting threads keep
    char* memory = nullptr;  // shared memory
    std::string printed;
    unsigned long long linear;
    // What inline PTX has under way: see asynchronous.h
    Async* async = nullptr;
    bool async_ready = false;  // it belongs to the block that runs now
    Cluster* cluster = nullptr;
    unsigned cluster_rank = 0;
    bool left_cluster = false;  // all its threads have ended, others of the cluster go on
    unsigned ended_threads() const {
        return finished;
    }
};
// Who called a library: the places of the calls that were under way when it launched its work.
struct Callers {
    void* frames[12];
    int count = 0;
};
struct LibraryCall {
    std::string name;  // "" if it cannot be told
    Site at;
};
Callers callers_of_library(const Kernel& k);  // none of a kernel of the program's own
const LibraryCall& library_call(const Callers& callers);
struct Grid {
    int device = 0;
    Callers callers;
    Work work;
    dim3 grid, block;
    size_t shared;
    Site at;
    bool cooperative, inner;
    unsigned long long blocks;
    std::atomic<unsigned long long> cursor{0}, done{0}, waiting_blocks{0};
    std::atomic<unsigned> generation{0};
    std::atomic<unsigned long long> moves{0};  // how often a thread that waited in a loop went on
    std::atomic<int> workers{0},
        idle{0};  // cores at work; those whose blocks have not moved for long
    std::atomic<int> error{0};
    std::atomic<bool> concurrent{false};
    unsigned long long stride = 1, offset = 0;  // shuffled order of the blocks
    std::mutex lock;
    std::vector<std::pair<unsigned long long, std::string>> printed;
    dim3 cluster;  // blocks of a cluster
    std::atomic<int> told_line{0};  // what blocks leave undone is told once
    std::atomic<bool> told_exit{false};
    std::vector<std::function<void()>>
        tails;  // launched into cudaStreamTailLaunch: run when this grid is done
};
cudaError_t run_grid(Grid& grid);
extern std::atomic<bool> stop_requested;  // Ctrl-C: all cores leave their grid
[[noreturn]] void abandon_grid(cudaError_t error);  // ends the running kernel from inside
unsigned shared_capacity();
extern bool shuffled;
extern unsigned long long seed;
Thread* current_thread();

// ---- memory.cpp, owners.cpp
const unsigned char fresh_byte = 0xFF;  // new device memory is full of it: NaN, -1
struct Allocation {
    char* start;
    size_t bytes, span;  // asked for; pages kept
    cudaMemoryType kind;
    Site at, freed_at;
    bool live;
    const char* name;  // of a Python argument
    int device = 0;
    bool open = true;  // its pages, where there are several devices
    bool of_graph = false;  // a graph gives it back
};
Allocation* find_allocation(const void* p);  // that contains p, or whose guard pages do
bool in_arena(const void* p);
bool in_device_arena(const void* p);
bool is_static(const void* p);  // a variable of the program
struct Segment {  // of a program or library in memory: its variables lie in one
    const char* start = nullptr;
    size_t bytes = 0;
    bool holds(const void* p) const {
        return p >= start && p < start + bytes;
    }
};
Segment static_segment(const void* p);  // with p in it; empty if there is none
bool on_host_only(const void* p);
bool is_registered(const void* p);  // with cudaHostRegister
void open_device();  // while a copy is at work
void close_device();
struct Open {  // device memory is open for the life of this
    Open() {
        open_device();
    }
    ~Open() {
        close_device();
    }
};
void open_for_kernel(int device);  // what a kernel of this device may reach
void close_after_kernel(int device);
cudaError_t give_back(void* p, Site at);  // an allocation, without waiting for work
void peers_changed();  // who may reach what, while kernels may be running
extern bool leave_device_open;
// kernel: whose launch in `at` may have written; callers: where it did the work of a library.
void check_canaries(const char* kernel, const Callers& callers, Site at);
void report_leaks();
std::string describe(const void* p, size_t bytes);
void add_python_buffer(void* p, size_t bytes, const char* name);
unsigned python_buffer_number(const Allocation& a);
void forget_python_buffers();
Allocation* find_python_buffer(const void* p);

// ---- devices.cpp
const int most_devices = 16;
const int max_resident_threads = 2048, processors = 32;  // a device's, and each processor's
int device_count();  // CUDA_CPU_DEVICES, or 1
int this_device();  // the one that is current in this host thread, or of the running kernel
void set_this_device(int device);
bool may_reach(int device, int owner);  // may kernels of the one use memory of the other?
size_t total_memory();

// ---- streams.cpp
struct Graph;
struct Stream {  // a known handle as long as it lives, as an event is
    Stream();
    ~Stream();
    unsigned flags = 0;
    int priority = 0;
    Graph* capture = nullptr;
    bool origin = false, destroyed = false;
    int device = 0;
    bool is_default = false;
    unsigned number = 0;  // in the order of operations, see order.cpp
};
struct Event {
    Event();
    ~Event();
    unsigned flags = 0;
    bool recorded = false;
    double time = 0;
    Graph* capture = nullptr;
    int device = 0;
    std::vector<unsigned> behind;  // what it was recorded behind, see order.cpp
};
Stream* stream_of(cudaStream_t s);
// The same; null, and the error is noted, for one that was destroyed or never there.
Stream* live_stream(cudaStream_t s);

// ---- order.cpp, for the slow checks
extern bool checking;
// Where the slow checks are built in: is each event kept, a thread comes to a barrier, lanes of a
// warp have met.
extern bool recording;
void record_barrier(Site at);
void record_met(unsigned warp, unsigned lanes, bool for_order, Site at);
// An asynchronous copy to shared memory, or, of 0 bytes, a wgmma that reads from there.
void record_flight(const Block& to, const char* p, size_t bytes, Site at, bool begins,
                   unsigned tid);
struct Operation {
    unsigned stream, count;  // the count-th of its stream
    int device;
    Site at;
    std::string what;  // "kernel `k`", "cudaMemcpyAsync" ...
    bool fenced = false;  // by a __threadfence_system()
};
struct Turn {  // under --check one host thread at a time does work
    Turn();
    ~Turn();
};
unsigned begin_operation(Stream* s, Site at, const char* what);
unsigned running_operation();
const Operation& operation(unsigned number);
bool before_this(unsigned number);  // does the running operation come behind that one?
bool host_waited_for(unsigned number);
void order_record(Event* e, Stream* s);
void order_wait(Stream* s, const Event* e);
void order_host_behind(const Event* e);
void order_host_behind(Stream* s);
void order_host_behind_device(int device);
void order_fence();
void order_host_behind_fence(unsigned number);
void order_together(const std::vector<Stream*>& streams);

// ---- lines.cpp
Site site_of(const void* code);  // by the debug information; line 0 when it is not to be had

// ---- report.cpp
// Prints one mistake: "file:line: error: text [kind]", with kernel, block and thread when one is
// running.
void report(const char* kind, Site at, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
void note(Site at, const char* format, ...) __attribute__((format(printf, 2, 3)));
void catch_signals();  // on this thread
void flush_printed();
void keep_printed(const std::string& text);
extern std::atomic<int> reports;
std::string& last_report();
bool report_peer(const Allocation* a, Site at, const char* verb);
void on_exit_checks();

// ---- errors.cpp, launches.cpp, streams.cpp
cudaError_t fail(cudaError_t e);  // remembers e for cudaGetLastError
cudaError_t sticky_error();  // of a kernel that failed, if the program has waited since
cudaError_t wait_for_device();  // the same of a call that waits
void set_sticky(cudaError_t e);
struct Config {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    Site at;
    bool cooperative, set;
    dim3 cluster = dim3(0, 0, 0);  // of a launch attribute; else the kernel's own
    Callers callers = {};
};
extern thread_local Config pending;
extern bool uses_asm;  // a source has inline PTX: dynamic shared memory is aligned as on a GPU
bool callback_running();  // of a stream, on this host thread
cudaError_t in_stream(cudaStream_t handle, cudaGraphNodeType type, bool async,
                      std::function<cudaError_t()> f, Site at = {"", 0}, const char* what = "");
bool check_launch_arguments(const Kernel&, const PointerArg*, int, Site at);

// ---- arrays.cpp
cudaError_t through_arrays(cudaMemcpy3DParms&);  // what names arrays then names their memory

// ---- checks.cpp, linked in for --check
void checks_begin_grid(Grid&);
extern unsigned long long barriers_without_all;
void checks_begin_block(Block&);
void checks_end_block(Block&);
void settle_unwritten();  // the launch is over
void forget_said();  // mistakes are told again, as in a new run of a program
void forget_taken(const char* p, size_t bytes);  // host memory that is written, or new
void checks_copied(const char* to, const char* from, size_t bytes, Site at);
void checks_fence(int scope);
void check_range(const void* p, size_t bytes, bool writes, Site at);  // of a copy, a collective
// A stream allocates or frees this memory: the running operation.
void check_ownership(const void* p, Site at);
size_t host_heap_bytes(
    const void* p);  // of the allocation by host code that holds p, or 0 (host_heap.cpp)
}  // namespace cuda_cpu
