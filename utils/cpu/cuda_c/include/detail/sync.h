// Barriers of a block, memory fences, clocks.
#pragma once
#include "thread.h"

namespace cuda_cpu {
enum BarrierKind { plain, count, all, any };
Switch arrive(BarrierKind kind, int predicate, Site at);
int barrier_result(unsigned generation);
unsigned barrier_generation();
// The waiting itself is in the header, so that a waiting thread has few frames on its stack: they
// are what costs time.
CUDA_CPU_UNCHECKED inline int block_barrier(BarrierKind kind, int predicate, Site at) {
    unsigned generation = barrier_generation();
    Switch s = arrive(kind, predicate, at);
    if (s.thread)
        ::cuda_cpu::cuda_cpu_switch(&s.thread->sp, s.to);
    return barrier_result(generation);
}
void fence(int scope);  // 0 block, 1 device, 2 system
long long clock_cycles();
unsigned long long global_nanoseconds();
[[noreturn]] void trap(Site at);
[[noreturn]] void assert_failed(const char* expression, const char* file, unsigned line,
                                const char* function);
int device_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
}  // namespace cuda_cpu

namespace cuda_cpu {
// The stack of the next thread in step.
CUDA_CPU_UNCHECKED inline void* go_in_step(Thread* t) {
    hot.in_step = t;
    hot.tid = t->tid;
    threadIdx = t->index;
    hot.fiber = t->fiber;
    if (t->next)
        __builtin_prefetch(t->next->sp);
    return t->sp;
}
}  // namespace cuda_cpu

CUDA_CPU_UNCHECKED inline void __syncthreads(CUDA_CPU_HERE) {
    ::cuda_cpu::Thread* t = ::cuda_cpu::hot.in_step;
    if (__builtin_expect(t && ::cuda_cpu::hot.step_line == at.line && t->next, 1)) {
        ::cuda_cpu::cuda_cpu_switch(&t->sp, ::cuda_cpu::go_in_step(t->next));
        return;
    }
    ::cuda_cpu::Switch s = ::cuda_cpu::arrive(::cuda_cpu::plain, 0, at);
    if (s.thread)
        ::cuda_cpu::cuda_cpu_switch(&s.thread->sp, s.to);
}
inline int __syncthreads_count(int p, CUDA_CPU_HERE) {
    return ::cuda_cpu::block_barrier(::cuda_cpu::count, p, at);
}
inline int __syncthreads_and(int p, CUDA_CPU_HERE) {
    return ::cuda_cpu::block_barrier(::cuda_cpu::all, p, at);
}
inline int __syncthreads_or(int p, CUDA_CPU_HERE) {
    return ::cuda_cpu::block_barrier(::cuda_cpu::any, p, at);
}
inline void __threadfence_block() {
    ::cuda_cpu::fence(0);
}
inline void __threadfence() {
    ::cuda_cpu::fence(1);
}
inline void __threadfence_system() {
    ::cuda_cpu::fence(2);
}
inline void __nanosleep(unsigned) {
    if (::cuda_cpu::in_kernel())
        ::cuda_cpu::give_way();
}
inline long long clock64() {
    return ::cuda_cpu::clock_cycles();
}
inline unsigned long long __globaltimer() {
    return ::cuda_cpu::global_nanoseconds();
}
inline void __trap(CUDA_CPU_HERE) {
    ::cuda_cpu::trap(at);
}
inline void __brkpt() {}
inline void __prof_trigger(int) {}
