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
// The largest textures and surfaces of compute capability 9.0 (CUDA programming guide, "Technical
// Specifications"); 0 for what there is not: mipmaps, cubemaps, gathers.
static void set_array_limits(cudaDeviceProp* p) {
    constexpr int wide = 131072, high = 65536, layered = 32768, layers = 2048, deep = 16384;
    auto set = [](int* to, std::initializer_list<int> sizes) {
        std::copy(sizes.begin(), sizes.end(), to);
    };
    p->maxTexture1D = wide;
    p->maxTexture1DLinear = 1 << 28;
    p->maxSurface1D = layered;
    set(p->maxTexture2D, {wide, high});
    set(p->maxTexture2DLinear, {wide, 65000, 2097120});
    set(p->maxSurface2D, {wide, high});
    set(p->maxTexture1DLayered, {layered, layers});
    set(p->maxSurface1DLayered, {layered, layers});
    set(p->maxTexture2DLayered, {layered, layered, layers});
    set(p->maxSurface2DLayered, {layered, layered, layers});
    set(p->maxTexture3D, {deep, deep, deep});
    set(p->maxTexture3DAlt, {deep / 2, deep / 2, 2 * deep});
    set(p->maxSurface3D, {deep, deep, deep});
    p->textureAlignment = p->surfaceAlignment = 512;
    p->texturePitchAlignment = 32;
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
    set_array_limits(p);
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
        p->hostRegisterSupported = p->clusterLaunch = p->unifiedFunctionPointers = 1;
    p->singleToDoublePrecisionPerfRatio = 2;
    p->sharedMemPerBlockOptin = shared_capacity();
    p->maxBlocksPerMultiProcessor = 32;
    p->reservedSharedMemPerBlock = 1024;
    return cudaSuccess;
}
// Attributes that are members of cudaDeviceProp, with `count` numbers that follow one another.
struct Member {
    cudaDeviceAttr first;
    size_t offset;
    int count;
};
#define MEMBER(attribute, name) \
    {cudaDevAttr##attribute, offsetof(cudaDeviceProp, name), sizeof(cudaDeviceProp::name) / 4}
static constexpr Member members[] = {
    MEMBER(MaxTexture1DWidth, maxTexture1D),
    MEMBER(MaxTexture1DLinearWidth, maxTexture1DLinear),
    MEMBER(MaxTexture1DMipmappedWidth, maxTexture1DMipmap),
    MEMBER(MaxTexture1DLayeredWidth, maxTexture1DLayered),
    MEMBER(MaxTexture2DWidth, maxTexture2D),
    MEMBER(MaxTexture2DLinearWidth, maxTexture2DLinear),
    MEMBER(MaxTexture2DMipmappedWidth, maxTexture2DMipmap),
    MEMBER(MaxTexture2DGatherWidth, maxTexture2DGather),
    MEMBER(MaxTexture2DLayeredWidth, maxTexture2DLayered),
    MEMBER(MaxTexture3DWidth, maxTexture3D),
    MEMBER(MaxTexture3DWidthAlt, maxTexture3DAlt),
    MEMBER(MaxTextureCubemapWidth, maxTextureCubemap),
    MEMBER(MaxTextureCubemapLayeredWidth, maxTextureCubemapLayered),
    MEMBER(MaxSurface1DWidth, maxSurface1D),
    MEMBER(MaxSurface1DLayeredWidth, maxSurface1DLayered),
    MEMBER(MaxSurface2DWidth, maxSurface2D),
    MEMBER(MaxSurface2DLayeredWidth, maxSurface2DLayered),
    MEMBER(MaxSurface3DWidth, maxSurface3D),
    MEMBER(MaxSurfaceCubemapWidth, maxSurfaceCubemap),
    MEMBER(MaxSurfaceCubemapLayeredWidth, maxSurfaceCubemapLayered),
    MEMBER(MaxAccessPolicyWindowSize, accessPolicyMaxWindowSize),
    MEMBER(SparseCudaArraySupported, sparseCudaArraySupported),
    MEMBER(HostRegisterReadOnlySupported, hostRegisterReadOnlySupported),
    MEMBER(TimelineSemaphoreInteropSupported, timelineSemaphoreInteropSupported),
    MEMBER(GPUDirectRDMASupported, gpuDirectRDMASupported),
    MEMBER(GPUDirectRDMAFlushWritesOptions, gpuDirectRDMAFlushWritesOptions),
    MEMBER(GPUDirectRDMAWritesOrdering, gpuDirectRDMAWritesOrdering),
    MEMBER(MemoryPoolSupportedHandleTypes, memoryPoolSupportedHandleTypes),
    MEMBER(ClusterLaunch, clusterLaunch),
    MEMBER(DeferredMappingCudaArraySupported, deferredMappingCudaArraySupported),
    MEMBER(IpcEventSupport, ipcEventSupported),
    MEMBER(NumaConfig, deviceNumaConfig),
    MEMBER(NumaId, deviceNumaId),
    MEMBER(MpsEnabled, mpsEnabled),
    MEMBER(HostNumaId, hostNumaId),
    MEMBER(GpuPciDeviceId, gpuPciDeviceID),
    MEMBER(GpuPciSubsystemId, gpuPciSubsystemID),
    MEMBER(HostNumaMultinodeIpcSupported, hostNumaMultinodeIpcSupported),
};
#undef MEMBER
cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int device) {
    cudaDeviceProp p;
    if (cudaError_t e = cudaGetDeviceProperties(&p, device))
        return e;
    for (const Member& m : members)
        if (a >= m.first && a < m.first + m.count) {
            memcpy(v, reinterpret_cast<char*>(&p) + m.offset + size_t(a - m.first) * 4, sizeof *v);
            return cudaSuccess;
        }
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
        case cudaDevAttrSurfaceAlignment:
            *v = 512;
            break;
        case cudaDevAttrTexturePitchAlignment:
            *v = 32;
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
        case cudaDevAttrD3D12CigSupported:
        case cudaDevAttrVulkanCigSupported:
        case cudaDevAttrHostNumaMemoryPoolsSupported:
        case cudaDevAttrHostMemoryPoolsSupported:
        case cudaDevAttrOnlyPartialHostNativeAtomicSupported:
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
