// Text that looks like a launch and is none: strings, comments, shifts, closing brackets of nested
// templates.
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

template <class T>
struct Box {
    T value;
};

// add<<<1, 1>>>(nothing);  __global__ void also_nothing() {}
/* <<< __shared__ int x; >>> */
__global__ void add(int* p, int v) {
    atomicAdd(p, v);
}
__global__ void shifts(int* p, int a, int b) {
    *p = (a << 3 << 1) + (b >> 2 >> 1) + (1 << (a < b));
}

#define TEXT(...) #__VA_ARGS__

int main() {
    std::vector<std::map<int, std::vector<int>>> nested(2);
    Box<Box<Box<int>>> boxes{{{5}}};
    std::pair<int, Box<Box<int>>> pairs[2] = {{1, {{2}}}, {3, {{4}}}};
    nested[0][3].push_back(7);
    const char* text = "add<<<1, 1>>>(p, 5); // \"__shared__\" \\";
    std::string raw = R"(kernel<<<grid, block>>>(x); __device__ " int)";
    char quote = '"', less = '<';
    int* p;
    cudaMallocManaged(&p, sizeof(int));
    *p = 0;
    add<<<1, 1>>>(p, boxes.value.value.value);
    // clang-format off
    add<<<(2 < 3 ? 1 : 2), 8 >> 2>>>(p, nested[0][3][0] << 4);
    // clang-format on
    add<<<1, dim3(1, (4 > 3))>>>(p, pairs[1].second.value.value);
    cudaDeviceSynchronize();
    int sum = *p;
    shifts<<<1, 1>>>(p, 3, 100);
    cudaDeviceSynchronize();
    printf("%d %d %s %zu %c%c %s\n", sum, *p, text, raw.size(), quote, less,
           TEXT(add<<<1, 1>>>(p)));
    int __shared__like = 1, my__global__ = 2;
    printf("%d\n", __shared__like + my__global__);
    cudaFree(p);
}
