// What is asked of a kernel and of the current device: attributes, occupancy, limits, clocks.
#include <math.h>
#include <time.h>
#include <algorithm>
#include "api.h"

namespace cuda_cpu {
void release_all();
cudaError_t function_attributes(cudaFuncAttributes* a, const void* f) {
    if (cudaError_t e = sticky_error())
        return e;
    Kernel* k = kernel_of(f);
    if (!k)
        return fail(cudaErrorInvalidDeviceFunction);
    *a = cudaFuncAttributes();
    a->sharedSizeBytes = k->static_shared;
    a->maxThreadsPerBlock = k->max_threads ? k->max_threads : 1024;
    a->numRegs = 32;
    a->ptxVersion = a->binaryVersion = 90;
    a->maxDynamicSharedSizeBytes = int(k->max_dynamic_shared - k->static_shared);
    a->preferredShmemCarveout = -1;
    return cudaSuccess;
}
cudaError_t set_function_attribute(const void* f, cudaFuncAttribute attribute, int value) {
    if (cudaError_t e = sticky_error())
        return e;
    Kernel* k = kernel_of(f);
    if (!k)
        return fail(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || unsigned(value) + k->static_shared > shared_capacity())
            return fail(cudaErrorInvalidValue);
        k->max_dynamic_shared = std::max(49152u, unsigned(value) + k->static_shared);
    }
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
        k->any_cluster = value != 0;
    return cudaSuccess;
}
cudaError_t occupancy(int* blocks, const void* f, int block_size, size_t shared) {
    if (cudaError_t e = sticky_error())
        return e;
    if (block_size <= 0)
        return fail(cudaErrorInvalidValue);
    Kernel* k = kernel_of(f);
    size_t used = shared + (k ? k->static_shared : 0) + 1024;
    int rounded = (block_size + 31) / 32 * 32;
    *blocks = block_size > 1024 || used > shared_capacity() + 1024u
                  ? 0
                  : int(std::min<size_t>(
                        {size_t(max_resident_threads / rounded), 32, (228u << 10) / used}));
    return cudaSuccess;
}
// How many clusters fit at once: as many as their blocks do. (A real GPU has a few less, where a
// group of SMs has no room for another whole one.)
cudaError_t active_clusters(int* clusters, const void* f, const cudaLaunchConfig_t* config) {
    const Kernel* k = kernel_of(f);
    if (!clusters || !config || !k)
        return fail(cudaErrorInvalidValue);
    unsigned size = 1;
    for (unsigned n : k->cluster)
        size *= std::max(1u, n);
    for (unsigned i = 0; i < config->numAttrs; ++i)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
            auto& of = config->attrs[i].val.clusterDim;
            size = of.x * of.y * of.z;
        }
    if (!size || size > largest_cluster_allowed)
        return fail(cudaErrorInvalidClusterSize);
    dim3 block = config->blockDim;
    int blocks = 0;
    if (cudaError_t e =
            occupancy(&blocks, f, int(block.x * block.y * block.z), config->dynamicSmemBytes))
        return e;
    *clusters = int(blocks * processors / size);
    return cudaSuccess;
}
cudaError_t largest_cluster(int* blocks, const void* f, const cudaLaunchConfig_t* config) {
    const Kernel* k = kernel_of(f);
    if (!blocks || !config || !k)
        return fail(cudaErrorInvalidValue);
    *blocks = int(most_in_cluster(*k));
    return cudaSuccess;
}
cudaError_t best_block(int* min_grid, int* block_size, const void* f, size_t (*shared)(void*, int),
                       void* data, int limit) {
    int best = 0, best_size = 0, best_blocks = 0;
    for (int n = limit > 0 && limit < 1024 ? limit : 1024; n > 0; n -= n % 32 ? n % 32 : 32) {
        int blocks = 0;
        if (cudaError_t e = occupancy(&blocks, f, n, shared(data, n)))
            return e;
        if (blocks * n > best) {
            best = blocks * n;
            best_size = n;
            best_blocks = blocks;
        }
    }
    *min_grid = best_blocks * processors;
    *block_size = best_size;
    return cudaSuccess;
}
}  // namespace cuda_cpu

using namespace cuda_cpu;

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return sticky_error();
}
static size_t limits[8] = {1024, 1048576, 8388608, 2, 2048, 64, 0, 0};
cudaError_t cudaDeviceGetLimit(size_t* v, cudaLimit l) {
    if (unsigned(l) > 6)
        return fail(cudaErrorUnsupportedLimit);
    *v = limits[l];
    return sticky_error();
}
cudaError_t cudaDeviceSetLimit(cudaLimit l, size_t v) {
    if (unsigned(l) > 6)
        return fail(cudaErrorUnsupportedLimit);
    limits[l] = v;
    return sticky_error();
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* c) {
    *c = cudaFuncCachePreferNone;
    return sticky_error();
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
    return sticky_error();
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* c) {
    *c = cudaSharedMemBankSizeFourByte;
    return sticky_error();
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
    return sticky_error();
}
cudaError_t cudaSetDeviceFlags(unsigned) {
    return sticky_error();
}
cudaError_t cudaGetDeviceFlags(unsigned* f) {
    *f = 0;
    return sticky_error();
}
cudaError_t cudaDeviceSynchronize() {
    if (in_kernel())
        return cudaSuccess;
    flush_printed();
    asked();
    if (captures(this_device()))
        return fail(cudaErrorStreamCaptureUnsupported);
    order_host_behind_device(this_device());
    return wait_for_device();
}
cudaError_t cudaThreadSynchronize() {
    return cudaDeviceSynchronize();
}
cudaError_t cudaThreadExit() {
    return cudaDeviceReset();
}
cudaError_t cudaDeviceReset() {
    flush_printed();
    reset_errors();
    release_all();
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* v) {
    *v = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* v) {
    *v = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaProfilerStart() {
    return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
    return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache() {
    return cudaSuccess;
}

namespace cuda_cpu {
long long clock_cycles() {
#if defined(__x86_64__)
    return (long long)__builtin_ia32_rdtsc();
#else
    return (long long)(double(global_nanoseconds()));
#endif
}
unsigned long long global_nanoseconds() {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (unsigned long long)t.tv_sec * 1000000000ull + (unsigned long long)t.tv_nsec;
}

// By bisection on erfc, which is accurate everywhere, then Newton's steps.
double inverse_normal(double p) {
    if (!(p > 0))
        return p == 0 ? -INFINITY : NAN;
    if (!(p < 1))
        return p == 1 ? INFINITY : NAN;
    double lo = -40, hi = 40;
    for (int i = 0; i < 60; ++i) {
        double mid = (lo + hi) / 2;
        (0.5 * ::erfc(-mid * M_SQRT1_2) < p ? lo : hi) = mid;
    }
    double x = (lo + hi) / 2;
    for (int i = 0; i < 2; ++i) {
        double density = ::exp(-x * x / 2) * 0.3989422804014327;
        if (density > 1e-300)
            x -= (0.5 * ::erfc(-x * M_SQRT1_2) - p) / density;
    }
    return x;
}
}  // namespace cuda_cpu
