// expect: [deadlock]; line 16; mode: fast; devices: 2
// Every rank sends first and receives then, so nobody receives.
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
    ncclSend(in, n, ncclFloat, 1 - r, comm, 0);
    ncclRecv(out, n, ncclFloat, 1 - r, comm, 0);
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
