// The host interface of the runtime. Plain functions are in runtime/*.cpp; what depends on a type
// is here.
#pragma once
#include "launch.h"

const char* cudaGetErrorString(cudaError_t);
const char* cudaGetErrorName(cudaError_t);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device);
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit);
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t value);
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache*);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache);
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig*);
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceFlags(unsigned* flags);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaThreadSynchronize();
cudaError_t cudaThreadExit();
cudaError_t cudaDeviceReset();
cudaError_t cudaDriverGetVersion(int*);
cudaError_t cudaRuntimeGetVersion(int*);
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();
cudaError_t cudaCtxResetPersistingL2Cache();

namespace cuda_cpu {
cudaError_t allocate(void** p, size_t bytes, int kind, Site at);  // kind: cudaMemoryType
cudaError_t release(void* p, Site at);
// With the stream, or with the graph that it captures
cudaError_t allocate_in_stream(void** p, size_t bytes, cudaStream_t s, Site at);
cudaError_t release_in_stream(void* p, cudaStream_t s, Site at);
cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t, bool async,
                 Site at);
cudaError_t copy_peer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                      cudaStream_t, bool async, Site at);
cudaError_t copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                    size_t height, cudaMemcpyKind, cudaStream_t, bool async, Site at,
                    const char* call = nullptr);
cudaError_t fill(void* p, int value, size_t bytes, cudaStream_t, bool async, Site at);
cudaError_t copy_symbol(void* symbol, size_t symbol_bytes, void* host, size_t bytes, size_t offset,
                        bool to_symbol, cudaStream_t, bool async, Site at);
void set_cluster(unsigned x, unsigned y, unsigned z);  // of the next launch by address
cudaError_t launch_kernel_by_address(const void* f, dim3 grid, dim3 block, void** args,
                                     size_t shared, cudaStream_t, bool cooperative, Site at);
cudaError_t function_attributes(cudaFuncAttributes*, const void* f);
cudaError_t set_function_attribute(const void* f, cudaFuncAttribute, int value);
cudaError_t occupancy(int* blocks, const void* f, int block_size, size_t shared);
template <class P>
inline const void* address(P* p) {
    return (const void*)p;
}
}  // namespace cuda_cpu

template <class T>
inline cudaError_t cudaMalloc(T** p, size_t bytes, CUDA_CPU_HERE) {
    return ::cuda_cpu::allocate((void**)p, bytes, cudaMemoryTypeDevice, at);
}
template <class T>
inline cudaError_t cudaMallocManaged(T** p, size_t bytes, unsigned = cudaMemAttachGlobal,
                                     CUDA_CPU_HERE) {
    return ::cuda_cpu::allocate((void**)p, bytes, cudaMemoryTypeManaged, at);
}
template <class T>
inline cudaError_t cudaMallocHost(T** p, size_t bytes, unsigned = 0, CUDA_CPU_HERE) {
    return ::cuda_cpu::allocate((void**)p, bytes, cudaMemoryTypeHost, at);
}
template <class T>
inline cudaError_t cudaHostAlloc(T** p, size_t bytes, unsigned = 0, CUDA_CPU_HERE) {
    return ::cuda_cpu::allocate((void**)p, bytes, cudaMemoryTypeHost, at);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** p, size_t bytes, cudaStream_t s, CUDA_CPU_HERE) {
    return ::cuda_cpu::allocate_in_stream((void**)p, bytes, s, at);
}
template <class T>
inline cudaError_t cudaMallocFromPoolAsync(T** p, size_t bytes, cudaMemPool_t, cudaStream_t s,
                                           CUDA_CPU_HERE) {
    return ::cuda_cpu::allocate_in_stream((void**)p, bytes, s, at);
}
template <class T>
inline cudaError_t cudaMallocPitch(T** p, size_t* pitch, size_t width, size_t height,
                                   CUDA_CPU_HERE) {
    *pitch = (width + 511) / 512 * 512;
    return ::cuda_cpu::allocate((void**)p, *pitch * height, cudaMemoryTypeDevice, at);
}
inline cudaError_t cudaMalloc3D(cudaPitchedPtr* p, cudaExtent e, CUDA_CPU_HERE) {
    p->pitch = (e.width + 511) / 512 * 512;
    p->xsize = e.width;
    p->ysize = e.height;
    return ::cuda_cpu::allocate(&p->ptr, p->pitch * e.height * e.depth, cudaMemoryTypeDevice, at);
}
inline cudaError_t cudaFree(void* p, CUDA_CPU_HERE) {
    return ::cuda_cpu::release(p, at);
}
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t s, CUDA_CPU_HERE) {
    return ::cuda_cpu::release_in_stream(p, s, at);
}
inline cudaError_t cudaFreeHost(void* p, CUDA_CPU_HERE) {
    return ::cuda_cpu::release(p, at);
}
template <class T>
inline cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned) {
    *(void**)device = host;
    return cudaSuccess;
}
cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* p);
cudaError_t cudaHostGetFlags(unsigned* flags, void* p);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes*, const void*);
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int device);
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation);
cudaError_t cudaMemPrefetchAsync(const void*, size_t, int device, cudaStream_t = nullptr);
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned flags,
                                 cudaStream_t = nullptr);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t*, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t);

inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                              CUDA_CPU_HERE) {
    return ::cuda_cpu::copy(to, from, bytes, kind, nullptr, false, at);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t s = nullptr, CUDA_CPU_HERE) {
    return ::cuda_cpu::copy(to, from, bytes, kind, s, true, at);
}
inline cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                                  size_t bytes, CUDA_CPU_HERE) {
    return ::cuda_cpu::copy_peer(to, to_device, from, from_device, bytes, nullptr, false, at);
}
inline cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                       size_t bytes, cudaStream_t s = nullptr, CUDA_CPU_HERE) {
    return ::cuda_cpu::copy_peer(to, to_device, from, from_device, bytes, s, true, at);
}
inline cudaError_t cudaMemcpy2D(void* to, size_t tp, const void* from, size_t fp, size_t w,
                                size_t h, cudaMemcpyKind kind, CUDA_CPU_HERE) {
    return ::cuda_cpu::copy_2d(to, tp, from, fp, w, h, kind, nullptr, false, at);
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t tp, const void* from, size_t fp, size_t w,
                                     size_t h, cudaMemcpyKind kind, cudaStream_t s = nullptr,
                                     CUDA_CPU_HERE) {
    return ::cuda_cpu::copy_2d(to, tp, from, fp, w, h, kind, s, true, at);
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms*);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms*, cudaStream_t = nullptr);
inline cudaError_t cudaMemset(void* p, int value, size_t bytes, CUDA_CPU_HERE) {
    return ::cuda_cpu::fill(p, value, bytes, nullptr, false, at);
}
inline cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t s = nullptr,
                                   CUDA_CPU_HERE) {
    return ::cuda_cpu::fill(p, value, bytes, s, true, at);
}
cudaError_t cudaMemset2D(void* p, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset2DAsync(void* p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t = nullptr);
cudaError_t cudaMemset3D(cudaPitchedPtr, int value, cudaExtent);
inline cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) {
    return {w, h, d};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) {
    return {x, y, z};
}
inline cudaPitchedPtr make_cudaPitchedPtr(void* p, size_t pitch, size_t x, size_t y) {
    return {p, pitch, x, y};
}

// Symbols: a __device__, __constant__ or __managed__ variable is an ordinary variable here.
template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes,
                                      size_t offset = 0, cudaMemcpyKind = cudaMemcpyHostToDevice,
                                      CUDA_CPU_HERE) {
    return ::cuda_cpu::copy_symbol((void*)&symbol, sizeof(T), (void*)from, bytes, offset, true,
                                   nullptr, false, at);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes,
                                           size_t offset, cudaMemcpyKind, cudaStream_t s = nullptr,
                                           CUDA_CPU_HERE) {
    return ::cuda_cpu::copy_symbol((void*)&symbol, sizeof(T), (void*)from, bytes, offset, true, s,
                                   true, at);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind = cudaMemcpyDeviceToHost, CUDA_CPU_HERE) {
    return ::cuda_cpu::copy_symbol((void*)&symbol, sizeof(T), to, bytes, offset, false, nullptr,
                                   false, at);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind, cudaStream_t s = nullptr,
                                             CUDA_CPU_HERE) {
    return ::cuda_cpu::copy_symbol((void*)&symbol, sizeof(T), to, bytes, offset, false, s, true,
                                   at);
}
template <class P, class T>
inline cudaError_t cudaGetSymbolAddress(P** p, const T& symbol) {
    *(void**)p = (void*)&symbol;
    return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
    *bytes = sizeof(T);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t*);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t*, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t*, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned flags = 0);
cudaError_t cudaStreamAddCallback(cudaStream_t, cudaStreamCallback_t, void* data, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t, void* data);
cudaError_t cudaStreamGetPriority(cudaStream_t, int*);
cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned*);
cudaError_t cudaStreamGetId(cudaStream_t, unsigned long long*);
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaLaunchAttributeID,
                                   const cudaLaunchAttributeValue*);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t = 0,
                                     unsigned = cudaMemAttachSingle);
cudaError_t cudaEventCreate(cudaEvent_t*);
cudaError_t cudaEventCreate(cudaEvent_t*, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t = nullptr, unsigned = 0);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventQuery(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t,
                                   cudaStreamCaptureMode = cudaStreamCaptureModeGlobal);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*);
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus*);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*);
cudaError_t cudaGraphCreate(cudaGraph_t*, unsigned flags);
cudaError_t cudaGraphDestroy(cudaGraph_t);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long flags = 0);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, cudaGraphNode_t*, char* log,
                                 size_t);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t*, cudaGraph_t,
                                          unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t, cudaGraphExecUpdateResultInfo*);
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, size_t* count);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t, cudaGraphNode_t,
                                             const cudaKernelNodeParams*);
cudaError_t cudaGraphClone(cudaGraph_t*, cudaGraph_t);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t, cudaGraphNodeType*);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                                   const cudaKernelNodeParams*);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                                   const cudaMemcpy3DParms*);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                                     void* to, const void* from, size_t bytes, cudaMemcpyKind);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                                   const cudaMemsetParams*);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                                 const cudaHostNodeParams*);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t);
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                                       size_t, cudaGraph_t child);
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t, cudaGraph_t*);
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                                     cudaMemAllocNodeParams*);
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                                    void*);
cudaError_t cudaDeviceGraphMemTrim(int device);
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle*, cudaGraph_t,
                                             unsigned start = 0, unsigned flags = 0);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t, const cudaKernelNodeParams*);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t, cudaGraphNode_t*, size_t* count);
cudaError_t cudaGraphGetEdges(cudaGraph_t, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData*, size_t* count);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                         size_t* count);
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                           size_t* count);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                        size_t n);
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t);
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t*, cudaGraphNode_t original, cudaGraph_t clone);
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t, const char* path, unsigned flags);
void cudaGraphSetConditional(cudaGraphConditionalHandle, unsigned value);
cudaError_t cudaGraphAddNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                             const cudaGraphEdgeData*, size_t, cudaGraphNodeParams*);
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*, size_t n);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t*,
                                          const cudaGraphEdgeData*, size_t, cudaStreamCaptureMode);
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t);

// Of kernels that may overlap with the one before: here that one is complete.
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}

// Kernels by address.
template <class F>
inline cudaError_t cudaLaunchKernel(F* f, dim3 grid, dim3 block, void** args, size_t shared = 0,
                                    cudaStream_t s = nullptr, CUDA_CPU_HERE) {
    if constexpr (std::is_function_v<F>)
        ::cuda_cpu::kernel_address(f);
    return ::cuda_cpu::launch_kernel_by_address((const void*)f, grid, block, args, shared, s, false,
                                                at);
}
template <class F>
inline cudaError_t cudaLaunchCooperativeKernel(F* f, dim3 grid, dim3 block, void** args,
                                               size_t shared = 0, cudaStream_t s = nullptr,
                                               CUDA_CPU_HERE) {
    if constexpr (std::is_function_v<F>)
        ::cuda_cpu::kernel_address(f);
    return ::cuda_cpu::launch_kernel_by_address((const void*)f, grid, block, args, shared, s, true,
                                                at);
}
template <class... P, class... A>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*f)(P...),
                                      A&&... args) {
    bool cooperative = false;
    for (unsigned i = 0; i < config->numAttrs; ++i)
        if (config->attrs[i].id == cudaLaunchAttributeCooperative)
            cooperative = config->attrs[i].val.cooperative;
    for (unsigned i = 0; i < config->numAttrs; ++i)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
            auto& size = config->attrs[i].val.clusterDim;
            ::cuda_cpu::set_cluster(size.x, size.y, size.z);
        }
    ::cuda_cpu::kernel_address(f);
    return [&](P... p) {
        void* list[] = {(void*)&p..., nullptr};
        return ::cuda_cpu::launch_kernel_by_address(
            (const void*)f, config->gridDim, config->blockDim, list, config->dynamicSmemBytes,
            config->stream, cooperative, {"", 0});
    }(static_cast<P>(std::forward<A>(args))...);
}
template <class F>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, F* f) {
    return ::cuda_cpu::function_attributes(a, (const void*)f);
}
template <class F>
inline cudaError_t cudaFuncSetAttribute(F* f, cudaFuncAttribute a, int value) {
    return ::cuda_cpu::set_function_attribute((const void*)f, a, value);
}
template <class F>
inline cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) {
    return cudaSuccess;
}
template <class F>
inline cudaError_t cudaFuncSetSharedMemConfig(F*, cudaSharedMemConfig) {
    return cudaSuccess;
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F* f, int block_size,
                                                                 size_t shared) {
    return ::cuda_cpu::occupancy(blocks, (const void*)f, block_size, shared);
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, F* f,
                                                                          int block_size,
                                                                          size_t shared, unsigned) {
    return ::cuda_cpu::occupancy(blocks, (const void*)f, block_size, shared);
}
namespace cuda_cpu {
cudaError_t active_clusters(int* clusters, const void* f, const cudaLaunchConfig_t* config);
cudaError_t largest_cluster(int* blocks, const void* f, const cudaLaunchConfig_t* config);
}  // namespace cuda_cpu
template <class F>
inline cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, F* f,
                                                  const cudaLaunchConfig_t* config) {
    return ::cuda_cpu::active_clusters(clusters, (const void*)f, config);
}
template <class F>
inline cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, F* f,
                                                        const cudaLaunchConfig_t* config) {
    return ::cuda_cpu::largest_cluster(blocks, (const void*)f, config);
}
namespace cuda_cpu {
cudaError_t best_block(int* min_grid, int* block_size, const void* f, size_t (*shared)(void*, int),
                       void* data, int limit);
}
template <class F, class S>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* min_grid, int* block_size,
                                                                  F* f, S shared, int limit = 0) {
    return ::cuda_cpu::best_block(
        min_grid, block_size, (const void*)f, [](void* s, int n) -> size_t { return (*(S*)s)(n); },
        &shared, limit);
}
template <class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* min_grid, int* block_size, F* f,
                                                      size_t shared = 0, int limit = 0) {
    return ::cuda_cpu::best_block(
        min_grid, block_size, (const void*)f, [](void* s, int) -> size_t { return *(size_t*)s; },
        &shared, limit);
}
