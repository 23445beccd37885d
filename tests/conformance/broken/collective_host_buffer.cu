// expect: [host-pointer]; line 23; mode: fast; devices: 2
// NCCL is given an array of the host.
#include <nccl.h>

const int n = 100;

int main() {
    ncclComm_t comms[2];
    cudaStream_t streams[2];
    float *in[2], *out[2];
    ncclCommInitAll(comms, 2, nullptr);
    for (int r = 0; r < 2; r++) {
        cudaSetDevice(r);
        cudaStreamCreate(&streams[r]);
        cudaMalloc(&in[r], n * sizeof(float));
        cudaMalloc(&out[r], n * sizeof(float));
        cudaMemset(in[r], 0, n * sizeof(float));
        cudaDeviceSynchronize();
    }
    float host[n] = {};
    ncclGroupStart();
    for (int r = 0; r < 2; r++)
        ncclAllReduce(host, out[r], n, ncclFloat, ncclSum, comms[r], streams[r]);
    ncclGroupEnd();
    for (int r = 0; r < 2; r++) {
        cudaFree(in[r]);
        cudaFree(out[r]);
        ncclCommDestroy(comms[r]);
    }
}
