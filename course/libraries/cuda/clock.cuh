// The clock of these programs: CUDA events, a cold L2 cache, the median.
#pragma once
#include <algorithm>
#include <cstring>
#include "helpers.cuh"

// Whether the program was started with the word "time".
inline bool wants_time(int argc, char** argv) {
    return argc > 1 && std::strcmp(argv[argc - 1], "time") == 0;
}

// Prints the median time of work() and half its interquartile range, in ms.
// stream: where work() runs. The L2 cache is overwritten before each repeat.
template <typename Work>
void print_time(const char* name, Work work, cudaStream_t stream = nullptr, int repeats = 25) {
    Device<char> flush(size_t(512) << 20);
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times(repeats);
    work();
    for (float& time : times) {
        CHECK(cudaMemsetAsync(flush, 1, flush.size, stream));
        CHECK(cudaEventRecord(begin, stream));
        work();
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&time, begin, end));
    }
    std::sort(times.begin(), times.end());
    const double middle = times[repeats / 2];
    const double spread = (times[repeats * 3 / 4] - times[repeats / 4]) / 2;
    std::printf("TIME %s %.6f %.6f\n", name, middle, spread);
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
}
