// expect: [stream-race]; line 32; mode: check; devices: 2
// The all-reduce has a stream of its own, and does not wait for the gradient.
#include <nccl.h>

__global__ void gradient(float* out) {
    out[threadIdx.x] = threadIdx.x;
}

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
    cudaStream_t work[2];
    for (int r = 0; r < 2; r++) {
        cudaSetDevice(r);
        cudaStreamCreate(&work[r]);
        gradient<<<1, n, 0, work[r]>>>(in[r]);
    }
    ncclGroupStart();
    for (int r = 0; r < 2; r++)
        ncclAllReduce(in[r], out[r], n, ncclFloat, ncclSum, comms[r], streams[r]);
    ncclGroupEnd();
    for (int r = 0; r < 2; r++) {
        cudaSetDevice(r);
        cudaDeviceSynchronize();
    }
    for (int r = 0; r < 2; r++) {
        cudaFree(in[r]);
        cudaFree(out[r]);
        ncclCommDestroy(comms[r]);
    }
}
