// expect: differ in the type; line 22; mode: fast; devices: 2
// Rank 1 sends integers where rank 0 sends floats.
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
    ncclAllReduce(in[0], out[0], n, ncclFloat, ncclSum, comms[0], streams[0]);
    ncclAllReduce(in[1], out[1], n, ncclInt, ncclSum, comms[1], streams[1]);
    ncclGroupEnd();
    for (int r = 0; r < 2; r++) {
        cudaFree(in[r]);
        cudaFree(out[r]);
        ncclCommDestroy(comms[r]);
    }
}
