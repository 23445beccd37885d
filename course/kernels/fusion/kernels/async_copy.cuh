// Copies from global to shared memory that run in the background (cp.async, compute capability 8.0
// on). Elsewhere they are ordinary copies. A thread that only reads what it copied itself needs no
// barrier, it just waits for its own copies.
#pragma once

__device__ inline void copy16(void* to, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
    *(uint4*)to = *(const uint4*)from;
#endif
}

// Closes a group: what this thread has started since the last one, if anything.
__device__ inline void close_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most PENDING of this thread's groups are still on their way.
template <int PENDING>
__device__ inline void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}
