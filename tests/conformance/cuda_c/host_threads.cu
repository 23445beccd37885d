// flags: -std=c++17
// Host threads launch on streams of their own at the same time, and their kernels of one block add
// to one number: atomics are atomic between kernels, too.
#include <cstdio>
#include <thread>
#include <vector>

const int hosts = 3, n = 64, times = 5000;

__global__ void add(unsigned* total) {
    for (int i = 0; i < times; i++)
        atomicAdd(total, 1u);
}

int main() {
    unsigned *total, result = 0;
    cudaMalloc(&total, sizeof(unsigned));
    cudaMemset(total, 0, sizeof(unsigned));
    cudaDeviceSynchronize();
    std::vector<std::thread> threads;
    for (int h = 0; h < hosts; h++)
        threads.emplace_back([=] {
            cudaStream_t stream;
            cudaStreamCreate(&stream);
            add<<<1, n, 0, stream>>>(total);
            cudaStreamSynchronize(stream);
            cudaStreamDestroy(stream);
        });
    for (auto& t : threads)
        t.join();
    cudaMemcpy(&result, total, sizeof(unsigned), cudaMemcpyDeviceToHost);
    printf("%u\n", result);
    cudaFree(total);
}
