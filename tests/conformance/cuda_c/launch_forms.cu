// The same launch written in every way: inside macros, lambdas, split over lines, with two to four
// configuration arguments, as an expression with commas, in a loop header and after an if.
#include <cstdio>
#include <functional>

#define LAUNCH(kernel, grid, block, ...)          \
    do {                                          \
        kernel<<<(grid), (block)>>>(__VA_ARGS__); \
        if (cudaGetLastError() != cudaSuccess)    \
            return 1;                             \
    } while (0)

#define CHECK(call)                            \
    if (cudaError_t e = (call)) {              \
        printf("%s\n", cudaGetErrorString(e)); \
        return 1;                              \
    }

__global__ void add(int* total, int value) {
    atomicAdd(total, value);
}

template <typename F, typename... Args>
void call(F kernel, dim3 grid, dim3 block, Args... args) {
    kernel<<<grid, block>>>(args...);
}

struct Launcher {
    int* total;
    void operator()(int value) const {
        add<<<1, 1>>>(total, value);
    }
};

int main() {
    int* total;
    CHECK(cudaMallocManaged(&total, sizeof(int)));
    *total = 0;
    LAUNCH(add, 2, dim3(3, 1, 1), total, 1);  // 6
    auto launch = [&](int value) { add<<<1, 2>>>(total, value); };
    launch(10);  // 20
    std::function<void(int, int)> general = [total](int blocks, int value) {
        add<<<blocks, dim3{2, 2}>>>(total, value);
    };
    general(2, 100);  // 800
    add<<<1,  // a comment inside the launch >>> must not end it
          4, 64, nullptr>>>(total, 1000 /* one value */
    );  // 4000
    call(add, dim3(1), dim3(3), total, 10000);  // 30000
    if (*"yes" == 'y')
        add<<<1, 1, 0>>>(total, 100000);
    for (int i = 0; i < 2; i++)
        add<<<1, 1, sizeof(int) * 4, cudaStream_t(0)>>>(total, 1 << 20);
    Launcher{total}(5);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    add<<<1, 1, 0, stream>>>(total, 0);
    CHECK(cudaDeviceSynchronize());
    printf("%d\n", *total);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(total));
}
