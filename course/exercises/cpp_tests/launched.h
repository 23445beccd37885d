// Kernels on the host, thread by thread: launched({grid, block}, kernel)(arguments) runs one. They
// meet no barrier. A launch must name the stream that the test program says.
#pragma once
#include "tests.h"
#include <algorithm>
#include <cmath>
#include <vector>

#define __global__ static
#define __device__ static
#define CHECK(call) (void)(call)

using std::max;
using std::min;
typedef int cudaStream_t;
static int cudaGetLastError() {
    return 0;
}
struct Axis {
    int x;
};
static Axis blockIdx, threadIdx, blockDim, gridDim;
static cudaStream_t expected_stream;

struct Grid {
    int blocks, threads;
    size_t shared = 0;
    cudaStream_t stream = 0;
};

template <class... Parameters>
static auto launched(Grid grid, void (*kernel)(Parameters...)) {
    if (grid.stream != expected_stream)
        FAIL("race",
             "A launch is in another stream than the rest: nothing makes it wait for them. "
             "LAUNCH(n) names the network's stream.");
    return [grid, kernel](Parameters... arguments) {
        gridDim.x = grid.blocks;
        blockDim.x = grid.threads;
        for (blockIdx.x = 0; blockIdx.x < grid.blocks; ++blockIdx.x)
            for (threadIdx.x = 0; threadIdx.x < grid.threads; ++threadIdx.x)
                kernel(arguments...);
    };
}
