// Changing stacks, for each kind of processor.
#include "fiber.h"

// Its name for the assembler.
#ifdef __APPLE__
#define CUDA_CPU_SYMBOL "_cuda_cpu_switch"
#else
#define CUDA_CPU_SYMBOL "cuda_cpu_switch"
#endif

namespace cuda_cpu {
#if defined(__x86_64__)
asm(".text\n.globl " CUDA_CPU_SYMBOL "\n.p2align 4\n" CUDA_CPU_SYMBOL
    ":\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    // not `ret`: the processor would predict the wrong return address every time
    "  popq %rcx\n  jmp *%rcx\n");

void prepare(Fiber& f, void (*entry)()) {
    // Neighbouring stacks start at different cache sets.
    void** top = reinterpret_cast<void**>(f.stack + f.size - 64 - 256 * size_t(f.number % 16));
    top = reinterpret_cast<void**>(size_t(top) & ~size_t(63));
    *--top =
        nullptr;  // a return address that ends back traces, and the alignment of a called function
    *--top = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; ++i)
        *--top = nullptr;
    f.sp = top;
}
#elif defined(__aarch64__)
asm(".text\n.globl " CUDA_CPU_SYMBOL "\n.p2align 4\n" CUDA_CPU_SYMBOL
    ":\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, "
    "x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, "
    "d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, "
    "x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, "
    "d15, [sp, #144]\n"
    "  add sp, sp, #160\n  br x30\n");

void prepare(Fiber& f, void (*entry)()) {
    void** top = reinterpret_cast<void**>(f.stack + f.size - 64 - 256 * size_t(f.number % 16));
    top = reinterpret_cast<void**>(size_t(top) & ~size_t(63)) - 20;
    for (int i = 0; i < 20; ++i)
        top[i] = nullptr;
    top[11] = reinterpret_cast<void*>(entry);  // x30
    f.sp = top;
}
#else
// Any other processor: the C library's contexts, which cost a system call a switch.
}  // namespace cuda_cpu
#include <ucontext.h>
namespace cuda_cpu {
extern "C" void cuda_cpu_switch(void** save, void* load) {
    ucontext_t here;
    *save = &here;  // lives on the stack that is being left
    swapcontext(&here, static_cast<ucontext_t*>(load));
}
void prepare(Fiber& f, void (*entry)()) {
    ucontext_t* c = reinterpret_cast<ucontext_t*>(f.stack + f.size - 4096);
    getcontext(c);
    c->uc_stack.ss_sp = f.stack;
    c->uc_stack.ss_size = f.size - 8192;
    c->uc_link = nullptr;
    makecontext(c, entry, 0);
    f.sp = c;
}
#endif
}  // namespace cuda_cpu
