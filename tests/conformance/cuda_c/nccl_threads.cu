// flags: -std=c++17 -lnccl
// NCCL with a thread for each rank: gradients made in one stream are summed in another, bucket by
// bucket, and events say what waits for what.
#include <cstdio>
#include <thread>
#include <vector>
#include <nccl.h>

const int n = 300, buckets = 4, steps = 5;

__global__ void gradient(float* out, const float* weights, int rank) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = weights[i] + rank;
}
__global__ void step(float* weights, const float* mean) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        weights[i] -= 0.5f * mean[i];
}

void train(int rank, int ranks, ncclUniqueId id, float* result) {
    cudaSetDevice(rank);
    ncclComm_t comm;
    if (ncclCommInitRank(&comm, ranks, id, rank) != ncclSuccess)
        return;
    float *weights, *grads;
    cudaStream_t work, talk;
    cudaEvent_t made, summed;
    cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&talk, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&summed, cudaEventDisableTiming);
    cudaMalloc(&weights, buckets * n * sizeof(float));
    cudaMalloc(&grads, buckets * n * sizeof(float));
    cudaMemsetAsync(weights, 0, buckets * n * sizeof(float), work);
    for (int s = 0; s < steps; s++) {
        for (int b = 0; b < buckets; b++) {
            gradient<<<2, 256, 0, work>>>(grads + b * n, weights + b * n, rank);
            cudaEventRecord(made, work);
            cudaStreamWaitEvent(talk, made, 0);
            ncclAllReduce(grads + b * n, grads + b * n, n, ncclFloat, ncclAvg, comm, talk);
        }
        cudaEventRecord(summed, talk);
        cudaStreamWaitEvent(work, summed, 0);
        for (int b = 0; b < buckets; b++)
            step<<<2, 256, 0, work>>>(weights + b * n, grads + b * n);
    }
    cudaMemcpyAsync(result, weights + buckets * n - 1, sizeof(float), cudaMemcpyDeviceToHost, work);
    cudaStreamSynchronize(work);
    cudaDeviceSynchronize();
    cudaFree(weights);
    cudaFree(grads);
    ncclCommDestroy(comm);
}

int main() {
    int ranks = 0;
    cudaGetDeviceCount(&ranks);
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    std::vector<std::thread> threads;
    std::vector<float> results(ranks);
    for (int r = 0; r < ranks; r++)
        threads.emplace_back(train, r, ranks, id, &results[r]);
    for (auto& t : threads)
        t.join();
    float w = 0;
    for (int s = 0; s < steps; s++)
        w -= 0.5f * (w + (ranks - 1) / 2.0f);
    int wrong = 0;
    for (float r : results)
        wrong += r != w;
    printf("wrong: %d\n", wrong);
}
