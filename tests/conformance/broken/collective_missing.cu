// expect: [deadlock]; line 18; mode: fast; devices: 2
// Only rank 0 prints the loss, and forgets that adding it up takes all ranks.
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
    ncclAllReduce(in, out, n, ncclFloat, ncclSum, comm, 0);
    if (r == 0)
        ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, 0);
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
