// expect: [collective-mismatch]; line 19; mode: fast; devices: 2
// One rank sends half of what the other waits for.
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
    if (r == 0)
        ncclSend(in, n / 2, ncclFloat, 1, comm, 0);
    else
        ncclRecv(out, n, ncclFloat, 0, comm, 0);
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
