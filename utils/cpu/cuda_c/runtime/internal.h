// What the runtime's own files share.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>
#define CUDA_CPU_RUNTIME
#include "../include/cuda_runtime.h"

namespace cuda_cpu {
// ---- scheduler.cpp: threads, blocks, grids
struct WarpState {
    unsigned exited = 0, syncs = 0;  // lanes that have ended; meetings so far
    Meeting* meetings = nullptr;
};
struct Grid;
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
    unsigned grid_generation;
    unsigned check_grid;  // number of the launch, for the slow checks
    std::vector<Thread> threads;
    std::vector<WarpState> warps;
    std::vector<unsigned> order;
    std::vector<Fiber*> fibers;  // stacks that its waiting threads keep
    char* memory = nullptr;  // shared memory
    std::string printed;
    unsigned long long linear;
};
struct Grid {
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

// ---- memory.cpp
struct Allocation {
    char* start;
    size_t bytes, span;  // asked for; pages kept
    cudaMemoryType kind;
    Site at, freed_at;
    bool live;
    const char* name;  // of a Python argument
};
Allocation* find_allocation(const void* p);  // that contains p, or whose guard pages do
bool in_arena(const void* p);
bool is_registered(const void* p);  // with cudaHostRegister
void open_device();  // while a kernel or a copy is at work
void close_device();
extern bool leave_device_open;
void check_canaries(const char* kernel, Site at);
void report_leaks();
std::string describe(const void* p, size_t bytes);
void add_python_buffer(void* p, size_t bytes, const char* name);
void forget_python_buffers();
Allocation* find_python_buffer(const void* p);

// ---- report.cpp
// Prints one mistake: "file:line: error: text [kind]", with kernel, block and thread when one is
// running.
void report(const char* kind, Site at, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
void note(Site at, const char* format, ...) __attribute__((format(printf, 2, 3)));
Site site_of(const void* code);  // by the debug information; line 0 when it is not to be had
void catch_signals();  // on this thread
void flush_printed();
void keep_printed(const std::string& text);
extern std::atomic<int> reports;
std::string& last_report();
void on_exit_checks();

// ---- api.cpp
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
};
extern thread_local Config pending;
bool check_launch_arguments(const Kernel&, const PointerArg*, int, Site at);

// ---- checks.cpp, linked in for --check
void checks_begin_grid(Grid&);
void checks_begin_block(Block&);
void checks_end_block(Block&);
void checks_fence();
size_t host_heap_bytes(
    const void* p);  // of the allocation by host code that holds p, or 0 (host_heap.cpp)
}  // namespace cuda_cpu
