// CUB: the same algorithms with memory, stream and moment in your hands; and pieces of kernels.
#include <algorithm>
#include <numeric>
#include <cub/cub.cuh>
#include "helpers.cuh"

using cub::DeviceRadixSort;
using cub::DeviceReduce;
using cub::DeviceScan;

// The sum of n floats: asked for its workspace first, then called again.
void sum(float* total, const float* x, int n, cudaStream_t stream) {
    size_t bytes = 0;
    CHECK(DeviceReduce::Sum(nullptr, bytes, x, total, n, stream));
    Device<char> workspace(bytes);
    CHECK(DeviceReduce::Sum(workspace.data, bytes, x, total, n, stream));
    CHECK(cudaStreamSynchronize(stream));  // the workspace must live until it is done
}

// The trap: the first call alone is no error, and no sum.
void forgotten_workspace(float* total, const float* x, int n) {
    size_t bytes = 0;
    const cudaError_t status = DeviceReduce::Sum(nullptr, bytes, x, total, n);
    std::printf("without a workspace: %s, %s bytes asked for\n", cudaGetErrorName(status),
                bytes > 0 ? "some" : "no");
}

void running_sums(float* sums, const float* x, int n, cudaStream_t stream) {
    size_t bytes = 0;
    CHECK(DeviceScan::InclusiveSum(nullptr, bytes, x, sums, n, stream));
    Device<char> workspace(bytes);
    CHECK(DeviceScan::InclusiveSum(workspace.data, bytes, x, sums, n, stream));
    CHECK(cudaStreamSynchronize(stream));
}

void sort(unsigned* sorted, const unsigned* keys, int n, cudaStream_t stream) {
    size_t bytes = 0;
    CHECK(DeviceRadixSort::SortKeys(nullptr, bytes, keys, sorted, n, 0, 32, stream));
    Device<char> workspace(bytes);
    CHECK(DeviceRadixSort::SortKeys(workspace.data, bytes, keys, sorted, n, 0, 32, stream));
    CHECK(cudaStreamSynchronize(stream));
}

constexpr int THREADS = 128;

// A kernel of ours with a piece of CUB's: each block the largest of its row.
__global__ void largest_of_rows(float* largest, const float* x, int columns) {
    using Reduce = cub::BlockReduce<float, THREADS>;
    __shared__ typename Reduce::TempStorage memory;
    float mine = -INFINITY;
    const float* row = x + blockIdx.x * columns;
    for (int i = threadIdx.x; i < columns; i += THREADS)
        mine = fmaxf(mine, row[i]);
    const auto larger = [](float a, float b) { return fmaxf(a, b); };
    const float all = Reduce(memory).Reduce(mine, larger);
    if (threadIdx.x == 0)
        largest[blockIdx.x] = all;  // only thread 0 has it
}

int main() {
    const int rows = 5;
    const int columns = 300;
    const int n = rows * columns;
    const std::vector<float> host = random_floats(n, 1);
    std::vector<unsigned> numbers(n);
    std::mt19937 engine(3);
    std::generate(numbers.begin(), numbers.end(), engine);
    Device<float> x(host);
    Device<float> total(1);
    Device<float> sums(n);
    Device<float> largest(rows);
    Device<unsigned> keys(numbers);
    Device<unsigned> sorted(n);

    forgotten_workspace(total, x, n);
    std::printf("the sum is then %s\n", std::isnan(total.host()[0]) ? "NaN, the poison" : "there");
    sum(total, x, n, nullptr);
    const double right = std::accumulate(host.begin(), host.end(), 0.0);
    require("sum", std::fabs(total.host()[0] - right), 1e-3);

    running_sums(sums, x, n, nullptr);
    std::vector<double> expected(host.begin(), host.end());
    std::partial_sum(expected.begin(), expected.end(), expected.begin());
    require("running sums", largest_error(sums.host(), expected), 1e-3);

    sort(sorted, keys, n, nullptr);
    std::sort(numbers.begin(), numbers.end());
    const bool in_order = sorted.host() == numbers;
    std::printf("sort: %s\n", in_order ? "right" : "WRONG");

    largest_of_rows<<<rows, THREADS>>>(largest, x, columns);
    CHECK(cudaGetLastError());
    std::vector<double> of_rows(rows);
    auto row = host.begin();
    for (double& largest_of_row : of_rows) {
        largest_of_row = *std::max_element(row, row + columns);
        row += columns;
    }
    require("largest of each row", largest_error(largest.host(), of_rows), 0);
    return in_order ? 0 : 1;
}
