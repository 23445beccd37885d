// flags: -std=c++17
// Kernels of several devices wait for each other: each leaves its numbers and a flag in the next
// one's memory, and waits for those of the one before. A host thread for each device.
#include <cstdio>
#include <thread>
#include <vector>

const int n = 96, rounds = 20;
const int places = 8;  // a rank may be ahead of the next one by all the others' rounds

struct Mailbox {
    int numbers[places][n];
    unsigned flag;
};

__global__ void pass_on(Mailbox* mine, Mailbox* next, int rank, int* result) {
    __shared__ int sum;
    int i = threadIdx.x, number = rank * n + i;
    for (unsigned round = 1; round <= rounds; round++) {
        next->numbers[round % places][i] = number;
        __threadfence_system();
        __syncthreads();
        if (i == 0) {
            atomicExch_system(&next->flag, round);
            while (atomicAdd_system(&mine->flag, 0u) < round)
                ;
            __threadfence_system();
        }
        __syncthreads();
        number = ((volatile int*)mine->numbers[round % places])[i] + 1;
    }
    if (i == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, number);
    __syncthreads();
    if (i == 0)
        *result = sum;
}

int main() {
    int ranks = 0;
    cudaGetDeviceCount(&ranks);
    std::vector<Mailbox*> boxes(ranks);
    std::vector<int> sums(ranks);
    for (int r = 0; r < ranks; r++) {
        cudaSetDevice(r);
        cudaMalloc(&boxes[r], sizeof(Mailbox));
        cudaMemset(boxes[r], 0, sizeof(Mailbox));
        if (ranks > 1)
            cudaDeviceEnablePeerAccess((r + 1) % ranks, 0);
        cudaDeviceSynchronize();
    }
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; r++)
        threads.emplace_back([&, r] {
            cudaSetDevice(r);
            int* result;
            cudaMalloc(&result, sizeof(int));
            pass_on<<<1, n>>>(boxes[r], boxes[(r + 1) % ranks], r, result);
            cudaMemcpy(&sums[r], result, sizeof(int), cudaMemcpyDeviceToHost);
            cudaFree(result);
        });
    for (auto& t : threads)
        t.join();
    int wrong = 0;
    for (int r = 0; r < ranks; r++) {
        int from = ((r - rounds) % ranks + ranks) % ranks;
        wrong += sums[r] != n * (n - 1) / 2 + n * (from * n + rounds);
        cudaFree(boxes[r]);
    }
    printf("wrong: %d\n", wrong);
}
