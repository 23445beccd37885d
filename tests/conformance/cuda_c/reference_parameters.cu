// A kernel's parameter may be a reference: the kernel gets an address and no copy.
#include <cstdio>
struct Pair {
    int first, second;
};

__global__ void turn(Pair& pair, const int& add) {
    int first = pair.first;
    pair.first = pair.second + add;
    pair.second = first;
}

template <typename T>
__global__ void raise(T& sum, T by) {
    atomicAdd(&sum, by);
}

int main() {
    Pair* pair;
    int* add;
    cudaMallocManaged(&pair, sizeof(Pair));
    cudaMallocManaged(&add, sizeof(int));
    *pair = {1, 2};
    *add = 10;
    turn<<<1, 1>>>(*pair, *add);
    cudaDeviceSynchronize();
    printf("%d %d\n", pair->first, pair->second);
    void* arguments[] = {&pair, &add};
    cudaLaunchKernel((void*)turn, 1, 1, arguments, 0, 0);
    cudaDeviceSynchronize();
    printf("%d %d\n", pair->first, pair->second);
    raise<<<2, 32>>>(*add, 3);
    printf("%s %d\n", cudaGetErrorName(cudaDeviceSynchronize()), *add);
    cudaFree(pair);
    cudaFree(add);
}
