// Asynchronous copies to shared memory, each thread's own: CUDA C++ Programming Guide, "Pipeline
// primitives interface". They arrive when their thread waits for them.
#pragma once
#include "cuda_runtime.h"
#include "macros_aside.inc"
#include "detail/ptx/declarations.h"

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0,
                                    CUDA_CPU_HERE) {
    using namespace ::cuda_cpu::ptx;
    cp_async(shared_address(to, at), reinterpret_cast<u64>(from), u32(bytes), u32(bytes - zeros),
             at);
}
inline void __pipeline_commit() {
    ::cuda_cpu::ptx::cp_async_commit();
}
inline void __pipeline_wait_prior(size_t pending) {
    ::cuda_cpu::ptx::cp_async_wait(unsigned(pending));
}
#include "macros_back.inc"
