// Stands in for course/kernels/reductions/cuda/bulk_copy.cuh where there is no GPU: copies are made
// at once, and a barrier is a number. So the kernels that use it can be tested for everything but
// the copy engine's own timing.
#pragma once

// Lies in shared memory. From the lowest bit: 16 bits of arrivals that are missing, 16 bits of
// arrivals a phase, 24 bits of bytes that are missing, 8 bits that count the phases.
using Barrier = unsigned long long;

__device__ inline void end_phase_if_complete(Barrier* barrier) {
    const Barrier missing = *barrier & 0x00ffffff0000ffffull;
    if (missing == 0) {
        *barrier += 1ull << 56;
        *barrier |= *barrier >> 16 & 0xffff;
    }
}

__device__ inline void barrier_init(Barrier* barrier, int arrivals) {
    *barrier = Barrier(arrivals) << 16 | arrivals;
}

__device__ inline void arrive(Barrier* barrier) {
    *barrier -= 1;
    end_phase_if_complete(barrier);
}

__device__ inline void arrive_and_expect(Barrier* barrier, unsigned bytes) {
    *barrier += Barrier(bytes) << 32;
    arrive(barrier);
}

__device__ inline void wait_for(Barrier* barrier, unsigned phase) {
    while ((*static_cast<volatile Barrier*>(barrier) >> 56 & 1) == (phase & 1))
        __nanosleep(20);
}

__device__ inline void shared_memory_to_copy_engine() {}

__device__ inline unsigned long long used_once() {
    return 0;
}

__device__ inline void bulk_load(void* shared, const void* global, unsigned bytes, Barrier* arrived,
                                 unsigned long long) {
    memcpy(shared, global, bytes);
    *arrived -= Barrier(bytes) << 32;
    end_phase_if_complete(arrived);
}

__device__ inline void bulk_store(void* global, const void* shared, unsigned bytes,
                                  unsigned long long) {
    memcpy(global, shared, bytes);
}

__device__ inline void end_group_of_stores() {}

template <int pending>
__device__ inline void wait_until_stores_have_read() {}

__device__ inline void wait_for_stores() {}
