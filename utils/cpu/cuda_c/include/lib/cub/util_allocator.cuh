// CUB's allocator that keeps what was given back; here nothing is kept, so that a use of it is seen.
#pragma once
#include "../macros_aside.inc"

namespace cub {
struct CachingDeviceAllocator {
    bool skip_cleanup = false, debug = false;

    CachingDeviceAllocator(bool skip = false, bool talks = false)
        : skip_cleanup(skip), debug(talks) {}
    CachingDeviceAllocator(unsigned, unsigned = 1, unsigned = 0, size_t = 0, bool skip = false,
                           bool talks = false)
        : skip_cleanup(skip), debug(talks) {}
    cudaError_t DeviceAllocate(int device, void** p, size_t bytes, cudaStream_t = 0) {
        int before;
        cudaGetDevice(&before);
        cudaSetDevice(device);
        cudaError_t e = cudaMalloc(p, bytes);
        cudaSetDevice(before);
        return e;
    }
    cudaError_t DeviceAllocate(void** p, size_t bytes, cudaStream_t = 0) {
        return cudaMalloc(p, bytes);
    }
    cudaError_t DeviceFree(int, void* p) {
        return cudaFree(p);
    }
    cudaError_t DeviceFree(void* p) {
        return cudaFree(p);
    }
    cudaError_t FreeAllCached() {
        return cudaSuccess;
    }
    cudaError_t SetMaxCachedBytes(size_t) {
        return cudaSuccess;
    }
};
}  // namespace cub
#include "../macros_back.inc"
