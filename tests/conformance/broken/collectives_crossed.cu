// expect: rank 1 calls ncclBroadcast; line 20; mode: fast; devices: 2
// Two threads make the same two calls in different orders.
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
    if (r == 0) {
        ncclAllReduce(in, out, n, ncclFloat, ncclSum, comm, 0);
        ncclBroadcast(out, out, n, ncclFloat, 0, comm, 0);
    } else {
        ncclBroadcast(out, out, n, ncclFloat, 0, comm, 0);
        ncclAllReduce(in, out, n, ncclFloat, ncclSum, comm, 0);
    }
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
