// expect: [deadlock]; line 17 or 18; mode: fast; devices: 2
// Rank 1 of the ring sends to itself.
#include <nccl.h>
#include <thread>

const int n = 100;

void rank(int r, ncclUniqueId id) {
    cudaSetDevice(r);
    ncclComm_t comm;
    float *in, *out;
    ncclCommInitRank(&comm, 2, id, r);
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemset(in, 0, n * sizeof(float));
    ncclGroupStart();
    ncclSend(in, n, ncclFloat, 1, comm, 0);
    ncclRecv(out, n, ncclFloat, 1 - r, comm, 0);
    ncclGroupEnd();
    cudaDeviceSynchronize();
    cudaFree(in);
    cudaFree(out);
    ncclCommDestroy(comm);
}

int main() {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    std::thread first(rank, 0, id), second(rank, 1, id);
    first.join();
    second.join();
}
