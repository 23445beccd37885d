// The devices: how many there are, which one is current, what they are like, who may reach whose
// memory. All of them are this computer's processor; CUDA_CPU_DEVICES says how many it plays.
#include <algorithm>
#include <cstdlib>
#include <thread>
#include "internal.h"

namespace cuda_cpu {
static const int l2_bytes = 50 << 20;
static thread_local int current = 0;  // a host thread starts with device 0
static std::atomic<bool> peers[most_devices][most_devices];  // [device][owner of the memory]

int device_count() {
    static const int count = [] {
        const char* wanted = std::getenv("CUDA_CPU_DEVICES");
        return std::clamp(wanted ? std::atoi(wanted) : 1, 1, most_devices);
    }();
    return count;
}
int this_device() {
    return in_kernel() ? hot.block->grid->device : current;
}
void set_this_device(int device) {
    current = device;
}
bool may_reach(int device, int owner) {
    return device == owner || peers[device][owner];
}
}  // namespace cuda_cpu
using namespace cuda_cpu;

static cudaError_t checked_device(int device) {
    if (cudaError_t e = sticky_error())
        return e;
    return device >= 0 && device < device_count() ? cudaSuccess : fail(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceCount(int* n) {
    *n = device_count();
    return sticky_error();
}
cudaError_t cudaGetDevice(int* d) {
    *d = this_device();
    return sticky_error();
}
cudaError_t cudaSetDevice(int d) {
    if (cudaError_t e = checked_device(d))
        return e;
    set_this_device(d);
    return cudaSuccess;
}
cudaError_t cudaChooseDevice(int* d, const cudaDeviceProp*) {
    *d = 0;
    return sticky_error();
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
    if (cudaError_t e = checked_device(device))
        return e;
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "CPU (%u cores, no GPU)",
             std::max(1u, std::thread::hardware_concurrency()));
    p->totalGlobalMem = total_memory();
    p->sharedMemPerBlock = 49152;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->memPitch = 2147483647;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->clockRate = 1000000;
    p->totalConstMem = 65536;
    p->major = 9;
    p->textureAlignment = 512;
    p->texturePitchAlignment = 32;
    p->deviceOverlap = p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = 1;
    p->multiProcessorCount = processors;
    p->integrated = device_count() == 1;
    p->pciBusID = device;
    p->asyncEngineCount = 1;
    p->memoryClockRate = 1000000;
    p->memoryBusWidth = 64;
    p->l2CacheSize = l2_bytes;
    p->maxThreadsPerMultiProcessor = max_resident_threads;
    p->streamPrioritiesSupported = p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->managedMemory = p->concurrentManagedAccess = p->cooperativeLaunch = p->memoryPoolsSupported =
        1;
    p->computePreemptionSupported = p->canUseHostPointerForRegisteredMem =
        p->hostRegisterSupported = 1;
    p->singleToDoublePrecisionPerfRatio = 2;
    p->sharedMemPerBlockOptin = shared_capacity();
    p->maxBlocksPerMultiProcessor = 32;
    p->reservedSharedMemPerBlock = 1024;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int device) {
    cudaDeviceProp p;
    if (cudaError_t e = cudaGetDeviceProperties(&p, device))
        return e;
    switch (a) {
        case cudaDevAttrMaxThreadsPerBlock:
        case cudaDevAttrMaxBlockDimX:
        case cudaDevAttrMaxBlockDimY:
            *v = 1024;
            break;
        case cudaDevAttrMaxBlockDimZ:
            *v = 64;
            break;
        case cudaDevAttrMaxGridDimX:
            *v = 2147483647;
            break;
        case cudaDevAttrMaxGridDimY:
        case cudaDevAttrMaxGridDimZ:
            *v = 65535;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            *v = 49152;
            break;
        case cudaDevAttrTotalConstantMemory:
            *v = 65536;
            break;
        case cudaDevAttrWarpSize:
            *v = 32;
            break;
        case cudaDevAttrMaxPitch:
            *v = 2147483647;
            break;
        case cudaDevAttrMaxRegistersPerBlock:
        case cudaDevAttrMaxRegistersPerMultiprocessor:
            *v = 65536;
            break;
        case cudaDevAttrClockRate:
            *v = p.clockRate;
            break;
        case cudaDevAttrTextureAlignment:
            *v = 512;
            break;
        case cudaDevAttrMultiProcessorCount:
            *v = processors;
            break;
        case cudaDevAttrMemoryClockRate:
            *v = p.memoryClockRate;
            break;
        case cudaDevAttrGlobalMemoryBusWidth:
            *v = p.memoryBusWidth;
            break;
        case cudaDevAttrL2CacheSize:
            *v = l2_bytes;
            break;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            *v = max_resident_threads;
            break;
        case cudaDevAttrComputeCapabilityMajor:
            *v = p.major;
            break;
        case cudaDevAttrComputeCapabilityMinor:
            *v = p.minor;
            break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            *v = 228 << 10;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            *v = int(shared_capacity());
            break;
        case cudaDevAttrMaxBlocksPerMultiprocessor:
            *v = 32;
            break;
        case cudaDevAttrReservedSharedMemoryPerBlock:
            *v = 1024;
            break;
        case cudaDevAttrSingleToDoublePrecisionPerfRatio:
            *v = 2;
            break;
        case cudaDevAttrPciBusId:
            *v = device;
            break;
        case cudaDevAttrKernelExecTimeout:
        case cudaDevAttrEccEnabled:
        case cudaDevAttrPciDeviceId:
        case cudaDevAttrPciDomainId:
        case cudaDevAttrTccDriver:
        case cudaDevAttrIsMultiGpuBoard:
        case cudaDevAttrMultiGpuBoardGroupID:
        case cudaDevAttrHostNativeAtomicSupported:
        case cudaDevAttrComputeMode:
        case cudaDevAttrPageableMemoryAccess:
        case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
        case cudaDevAttrDirectManagedMemAccessFromHost:
        case cudaDevAttrMaxPersistingL2CacheSize:
            *v = 0;
            break;
        default:
            *v = 1;
    }
    return cudaSuccess;
}

// ---- peers
static cudaError_t checked_pair(int device, int peer) {
    if (cudaError_t e = checked_device(device))
        return e;
    if (cudaError_t e = checked_device(peer))
        return e;
    return device == peer ? fail(cudaErrorInvalidDevice) : cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* v, cudaDeviceP2PAttr a, int device, int peer) {
    *v = 0;
    if (cudaError_t e = checked_pair(device, peer))
        return e;
    *v = a != cudaDevP2PAttrPerformanceRank;
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    *can = 0;
    if (cudaError_t e = checked_device(device))
        return e;
    if (cudaError_t e = checked_device(peer))
        return e;
    *can = device != peer;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    if (cudaError_t e = checked_pair(this_device(), peer))
        return e;
    if (flags)
        return fail(cudaErrorInvalidValue);
    if (peers[this_device()][peer].exchange(true))
        return fail(cudaErrorPeerAccessAlreadyEnabled);
    peers_changed();
    return cudaSuccess;
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    if (cudaError_t e = checked_pair(this_device(), peer))
        return e;
    if (!peers[this_device()][peer].exchange(false))
        return fail(cudaErrorPeerAccessNotEnabled);
    peers_changed();
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int d) {
    if (cudaError_t e = checked_device(d))
        return e;
    snprintf(text, size_t(size), "0000:%02x:00.0", d);
    return cudaSuccess;
}
