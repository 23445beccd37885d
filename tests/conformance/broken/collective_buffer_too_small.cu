// expect: [collective-size]; line 22; mode: fast; devices: 2
// An all-gather receives from every rank, so its buffer must be larger.
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
    ncclGroupStart();
    for (int r = 0; r < 2; r++)
        ncclAllGather(in[r], out[r], n, ncclFloat, comms[r], streams[r]);
    ncclGroupEnd();
    for (int r = 0; r < 2; r++) {
        cudaFree(in[r]);
        cudaFree(out[r]);
        ncclCommDestroy(comms[r]);
    }
}
