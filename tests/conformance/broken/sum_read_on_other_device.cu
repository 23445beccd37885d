// expect: [stream-race]; line 22; mode: check; devices: 2
// Stream 0 is each device's own: device 1's copy does not wait for device 0's sum.
#include <nccl.h>

const int n = 100;

int main() {
    ncclComm_t comms[2];
    float *sum[2], last[2];
    ncclCommInitAll(comms, 2, nullptr);
    for (int r = 0; r < 2; r++) {
        cudaSetDevice(r);
        cudaMalloc(&sum[r], n * sizeof(float));
        cudaMemset(sum[r], 0, n * sizeof(float));
        cudaDeviceSynchronize();
    }
    ncclGroupStart();
    for (int r = 0; r < 2; r++)
        ncclAllReduce(sum[r], sum[r], n, ncclFloat, ncclSum, comms[r], 0);
    ncclGroupEnd();
    for (int r = 0; r < 2; r++)
        cudaMemcpy(&last[r], sum[r] + n - 1, sizeof(float), cudaMemcpyDeviceToHost);
    for (int r = 0; r < 2; r++) {
        cudaFree(sum[r]);
        ncclCommDestroy(comms[r]);
    }
}
