// What blocks of the megakernel tell each other: a barrier of the whole grid.
#pragma once
#include "mega_stream.cuh"

// Whoever sees the count sees what this block's threads wrote before their barrier, too.
__device__ inline void arrive(unsigned* arrived) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
}

// The same, and all that others wrote who came before; returns how many those are.
__device__ inline unsigned arrive_and_see(unsigned* arrived) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(arrived)
                 : "memory");
    return before;
}

__device__ inline unsigned load_acquire(const unsigned* from) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

// The barrier of the threads that multiply, without the one that copies.
__device__ inline void sync_warps() {
    asm volatile("bar.sync 1, %0;" ::"n"(32 * WARPS) : "memory");
}

// All blocks' arrivals in one counter, which the launch's last block sets back to 0. All blocks must
// run at once: a launch has at most as many as the GPU has SMs.
struct Grid {
    unsigned* arrived;
    unsigned expected = 0;

    // What any block's threads wrote before, all blocks' threads see behind it.
    __device__ void sync() {
        sync_warps();  // this block's threads have written
        expected += gridDim.x;
        if (threadIdx.x == 0) {
            arrive(arrived);
            while (load_acquire(arrived) < expected) {}
        }
        sync_warps();  // thread 0 has seen all blocks
    }

    // Counts this block's end; whether it is the last one. By one thread.
    __device__ bool last() {
        return arrive_and_see(arrived) == expected + gridDim.x - 1;
    }
};
