// NCCL on the CPU: communicators, groups, all-reduce, reduce, broadcast, all-gather,
// reduce-scatter, send and receive, for ranks that are threads of one process (or one thread's) on
// the devices that CUDA_CPU_DEVICES asks for.
//
// A call returns when its work is done; sums are formed in the order of the ranks. Ranks in several
// processes, ncclCommSplit, windows and calls while a graph is captured are not offered.
#pragma once
#include "detail/collectives.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "macros_aside.inc"

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 0
#define NCCL_VERSION_CODE 22800
#define NCCL_UNIQUE_ID_BYTES 128

typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;
typedef ::cuda_cpu::Rank* ncclComm_t;
typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;
typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5
} ncclRedOp_t;
typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclNumTypes = 10
} ncclDataType_t;

namespace cuda_cpu {
inline ncclResult_t collective(ncclComm_t comm, CollectiveKind kind, const char* name,
                               const void* send, void* recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, int peer, cudaStream_t stream, Site at) {
    return ncclResult_t(
        call_collective(comm, {kind, name, send, recv, count, type, operation, peer, stream, at}));
}
}  // namespace cuda_cpu

inline const char* ncclGetErrorString(ncclResult_t result) {
    static const char* const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return unsigned(result) < ncclNumResults ? texts[result] : "unknown result code";
}
inline const char* ncclGetLastError(ncclComm_t) {
    return "";
}
inline ncclResult_t ncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
inline ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    *id = {};
    unsigned long long number = ::cuda_cpu::new_clique_id();
    memcpy(id->internal, &number, sizeof number);
    return ncclSuccess;
}
inline ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                     CUDA_CPU_HERE) {
    unsigned long long number;
    memcpy(&number, id.internal, sizeof number);
    return ncclResult_t(::cuda_cpu::join_clique(comm, ranks, number, rank, at));
}
inline ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ranks, const int* devices,
                                    CUDA_CPU_HERE) {
    return ncclResult_t(::cuda_cpu::make_clique(comms, ranks, devices, at));
}
inline ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    return comm ? ncclSuccess : ncclInvalidArgument;
}
inline ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    return ncclResult_t(::cuda_cpu::leave_clique(comm));
}
inline ncclResult_t ncclCommAbort(ncclComm_t comm) {
    return ncclCommDestroy(comm);
}
inline ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
    *count = ::cuda_cpu::clique_size(comm);
    return ncclSuccess;
}
inline ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
    *rank = ::cuda_cpu::number_in_clique(comm);
    return ncclSuccess;
}
inline ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
    *device = ::cuda_cpu::device_of_rank(comm);
    return ncclSuccess;
}
inline ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
    *error = ncclSuccess;
    return comm ? ncclSuccess : ncclInvalidArgument;
}
inline ncclResult_t ncclGroupStart() {
    return ncclResult_t(::cuda_cpu::start_group());
}
inline ncclResult_t ncclGroupEnd(CUDA_CPU_HERE) {
    return ncclResult_t(::cuda_cpu::end_group(at));
}

inline ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type,
                                  ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream,
                                  CUDA_CPU_HERE) {
    return ::cuda_cpu::collective(comm, ::cuda_cpu::CollectiveKind::all_reduce, "ncclAllReduce",
                                  send, recv, count, type, operation, 0, stream, at);
}
inline ncclResult_t ncclReduce(const void* send, void* recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, int root, ncclComm_t comm,
                               cudaStream_t stream, CUDA_CPU_HERE) {
    return ::cuda_cpu::collective(comm, ::cuda_cpu::CollectiveKind::reduce, "ncclReduce", send,
                                  recv, count, type, operation, root, stream, at);
}
inline ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type,
                                  int root, ncclComm_t comm, cudaStream_t stream, CUDA_CPU_HERE) {
    return ::cuda_cpu::collective(comm, ::cuda_cpu::CollectiveKind::broadcast, "ncclBroadcast",
                                  send, recv, count, type, ncclSum, root, stream, at);
}
inline ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root,
                              ncclComm_t comm, cudaStream_t stream, CUDA_CPU_HERE) {
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream, at);
}
inline ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type,
                                  ncclComm_t comm, cudaStream_t stream, CUDA_CPU_HERE) {
    return ::cuda_cpu::collective(comm, ::cuda_cpu::CollectiveKind::all_gather, "ncclAllGather",
                                  send, recv, count, type, ncclSum, 0, stream, at);
}
inline ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count,
                                      ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                                      cudaStream_t stream, CUDA_CPU_HERE) {
    return ::cuda_cpu::collective(comm, ::cuda_cpu::CollectiveKind::reduce_scatter,
                                  "ncclReduceScatter", send, recv, count, type, operation, 0,
                                  stream, at);
}
inline ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream, CUDA_CPU_HERE) {
    return ::cuda_cpu::collective(comm, ::cuda_cpu::CollectiveKind::send, "ncclSend", send, nullptr,
                                  count, type, ncclSum, peer, stream, at);
}
inline ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream, CUDA_CPU_HERE) {
    return ::cuda_cpu::collective(comm, ::cuda_cpu::CollectiveKind::recv, "ncclRecv", nullptr, recv,
                                  count, type, ncclSum, peer, stream, at);
}
#include "macros_back.inc"
