// How the libraries do their work: as a kernel of one thread a block, in the stream the library was
// given, so that order, graph capture and the checks are those of any kernel.
#pragma once
#include "macros_aside.inc"

namespace cuda_cpu {
template <class F>
__global__ void library_task(F work) {
    work((long)blockIdx.x);
}

// Runs work(0) ... work(blocks - 1), in any order, on the device.
template <class F>
inline cudaError_t device_task(cudaStream_t stream, long blocks, F work) {
    if (blocks <= 0)
        return cudaSuccess;
    library_task<F><<<(unsigned)blocks, 1, 0, stream>>>(work);
    return cudaPeekAtLastError();
}
}  // namespace cuda_cpu
#include "macros_back.inc"
