// The thread that is running now: its indices, and the loop that starts the threads of a block.
#pragma once
#include "types.h"

#if defined(__APPLE__) || (defined(__PIC__) && !defined(__PIE__))
// A library that is loaded later: the room for the fastest model is small, and would be full after
// a few libraries. Nothing outside of it asks for these, so that one look-up serves them all.
#define CUDA_CPU_TLS __thread __attribute__((visibility("hidden")))
#else
#define CUDA_CPU_TLS __thread __attribute__((tls_model("initial-exec")))
#endif
// Code of the runtime that lives in headers is kept out of the slow checks: they look at the
// learner's code only.
#define CUDA_CPU_UNCHECKED __attribute__((no_sanitize("thread", "undefined")))

extern CUDA_CPU_TLS uint3 threadIdx, blockIdx;
extern CUDA_CPU_TLS dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cuda_cpu {
struct Block;
struct Fiber;
struct Meeting;

// Where in the learner's source a call stands; default arguments fill it in at each call.
struct Site {
    const char* file;
    int line;
};
#define CUDA_CPU_HERE ::cuda_cpu::Site at = {__builtin_FILE(), __builtin_LINE()}

// What the inner loop needs of the block that runs on this core, in thread-local storage.
struct Thread;
struct Hot {
    Block* block;  // null in host code
    unsigned next, count;  // the next thread to start, and how many there are
    unsigned tid;  // number of the running thread in its block
    bool tracking;  // somebody has waited: threads that end must be accounted for
    bool concurrent;  // other cores run blocks of this grid: atomics must be atomic
    uint3 cursor;  // index of the next thread to start
    const unsigned* order;  // shuffled order of the threads, or null
    Fiber* fiber;  // the stack that is running
    char *shared,
        *dynamic_shared;  // the block's shared memory: static variables, then the dynamic part
    unsigned shared_bytes, spin;
    unsigned left;  // threads that have left by an explicit `return`
    Thread*
        // the running thread, while all of the block go from one barrier to the next; else null
        in_step;
    int step_line;  // the line of the barrier that those before it have reached; 0: none has
};
extern CUDA_CPU_TLS Hot hot;

// A thread that waits, or has waited: what its next turn needs lies in one cache line.
enum Wait : int {
    not_waiting,
    at_barrier,
    at_meeting,
    at_active,
    at_grid,
    gave_way,
    in_wait_loop,
    at_mbarrier,
    at_named,
    at_cluster,
    at_wgmma
};
struct alignas(64) Thread {
    Thread* next;  // in a list of those that wait for the same thing, or that can go on
    void* sp;  // where its stack was left
    Fiber* fiber;
    uint3 index;
    unsigned tid;
    Site at;  // of the call that waits
    Wait wait;
    Meeting* meeting;
};
struct List {
    Thread *head = nullptr, *tail = nullptr;
    unsigned size = 0;
    void push(Thread* t) {
        t->next = nullptr;
        (head ? tail->next : head) = t;
        tail = t;
        ++size;
    }
    Thread* pop() {
        Thread* t = head;
        head = t->next;
        --size;
        return t;
    }
    void append(List& other) {
        if (!other.head)
            return;
        (head ? tail->next : head) = other.head;
        tail = other.tail;
        size += other.size;
        other = List();
    }
};
// The answer of a call that may have to wait: the thread, if it must leave its stack, and the stack
// to go on with.
struct Switch {
    Thread* thread;
    void* to;
};
extern "C" void cuda_cpu_switch(void** save, void* load);  // runtime/fiber.h

inline bool in_kernel() {
    return hot.block != nullptr;
}
void start_shuffled_thread();
void thread_finished();
void give_way();  // lets other threads run: called where a thread may be spinning

CUDA_CPU_UNCHECKED inline bool start_thread() {
    Hot& h = hot;
    if (h.next >= h.count)
        return false;
    if (__builtin_expect(h.order != nullptr, 0)) {
        start_shuffled_thread();
        return true;
    }
    h.tid = h.next++;
    threadIdx = h.cursor;
    if (++h.cursor.x == blockDim.x) {
        h.cursor.x = 0;
        if (++h.cursor.y == blockDim.y) {
            h.cursor.y = 0;
            ++h.cursor.z;
        }
    }
    return true;
}

// A kernel's arguments are bits on a GPU: a thread's copy of them is made by no constructor and
// ends by no destructor (which would free what all threads use).
template <class Body>
CUDA_CPU_UNCHECKED inline void run_thread(const void* body) {
    if constexpr (__is_trivially_copyable(Body)) {
        Body mine(*static_cast<const Body*>(body));
        mine();
    } else {
        alignas(Body) unsigned char mine[sizeof(Body)];
        __builtin_memcpy(mine, body, sizeof(Body));
        (*reinterpret_cast<Body*>(mine))();
    }
}
// Runs threads one after another on this stack. A thread that must wait keeps the stack, and
// another stack goes on with this loop: a kernel that never waits is a plain loop.
template <class Body>
CUDA_CPU_UNCHECKED void run_threads(const void* body) {
    while (start_thread()) {
        run_thread<Body>(body);
        if (hot.tracking)
            thread_finished();
    }
}

// A loop that does nothing but wait, `while (flag == 0);`: rewrite.py puts one of these around it.
// The others get their turn, and when all that is left of a kernel are threads in such loops,
// nothing will ever change.
void keep_waiting(bool for_time, Site at);
void waited();
struct WaitLoop {
    unsigned turns = 0;
    CUDA_CPU_UNCHECKED void again(bool for_time, CUDA_CPU_HERE) {
        if (++turns % 128 == 0 && in_kernel())
            keep_waiting(for_time, at);
    }
    CUDA_CPU_UNCHECKED ~WaitLoop() {
        if (turns >= 128 && in_kernel())
            waited();
    }
};

const unsigned longest_spin = 20000;  // atomic operations, before others run
CUDA_CPU_UNCHECKED inline void spinning() {
    if (__builtin_expect(++hot.spin > longest_spin, 0) && in_kernel())
        give_way();
}
}  // namespace cuda_cpu
