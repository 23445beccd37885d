// fail(...) says what happened and stops; CHECK(...) does so when a CUDA call failed.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

[[noreturn]] inline void fail(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    cudaDeviceReset();  // gives back all of the GPU's memory
    exit(1);
}

// What to do about the two CUDA errors that a learner meets.
inline const char* advice_for(cudaError_t error) {
    if (error == cudaErrorMemoryAllocation)
        return ": the GPU's memory is full. Try a smaller batch";
    if (error == cudaErrorNoKernelImageForDevice)
        return ": built for another GPU. Compile it on this one, or add its -arch";
    return "";
}

#define CHECK(call) check((call), #call)
inline void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess)
        fail("%s: %s%s", what, cudaGetErrorString(error), advice_for(error));
}
