// expect: [deadlock]; line 12; mode: fast; devices: 2
// One rank too few is started.
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
    cudaDeviceSynchronize();
    cudaFree(in);
    cudaFree(out);
    ncclCommDestroy(comm);
}

int main() {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    std::thread first(rank, 0, id);
    first.join();
}
