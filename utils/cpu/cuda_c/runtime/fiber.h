// Stacks that can be switched by hand: what a CUDA thread needs as soon as it has to wait for
// another.
#pragma once
#include <cstddef>
#include "../include/detail/thread.h"

namespace cuda_cpu {
struct Fiber {
    void* sp = nullptr;  // where a fresh one starts
    char* stack = nullptr;
    size_t size = 0;
    Fiber* next = nullptr;
    int number = 0;
};

// Saves the registers that calls preserve and the stack pointer at *save, and goes on where `load`
// was saved.
// (cuda_cpu_switch is declared in include/detail/thread.h)
// Makes a fresh stack start in `entry`, which must never return.
void prepare(Fiber& f, void (*entry)());
}  // namespace cuda_cpu
