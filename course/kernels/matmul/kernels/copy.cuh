// Asynchronous copies from global to shared memory (cp.async, from compute capability 8.0).
// Before 8.0 they are plain copies.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
template <int WIDTH>
__device__ void copy(float* to, const float* from, bool inside) {
    for (int i = 0; i < WIDTH; i++)
        to[i] = inside ? from[i] : 0.0f;
}
__device__ void close_group() {}
template <int OPEN>
__device__ void wait_for_groups() {}
#else
// Starts to copy WIDTH elements: 1, or 4 where both addresses are multiples of 16 bytes.
// No register holds them and nobody waits. A copy that is not `inside` writes zeros.
template <int WIDTH>
__device__ void copy(float* to, const float* from, bool inside) {
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    int bytes = inside ? WIDTH * 4 : 0;
    if constexpr (WIDTH == 4)  // past the L1 cache
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                     "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                     "r"(bytes)
                     : "memory");
}

// The copies that this thread has started since the last call are a group.
__device__ void close_group() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most OPEN of this thread's youngest groups are still under way.
template <int OPEN>
__device__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(OPEN) : "memory");
}
#endif
