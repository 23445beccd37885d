// Algorithms over whole arrays, written like those of C++: Thrust.
#include <algorithm>
#include <numeric>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include "helpers.cuh"

struct Square {
    __host__ __device__ double operator()(float x) const {
        return double(x) * x;
    }
};

int main() {
    const std::vector<float> host = random_floats(1000, 1);
    thrust::device_vector<float> x(host.begin(), host.end());  // copies to the GPU, frees itself

    const double squares =
        thrust::transform_reduce(x.begin(), x.end(), Square(), 0.0, thrust::plus<double>());
    const double right = std::inner_product(host.begin(), host.end(), host.begin(), 0.0);
    require("sum of squares", std::fabs(squares - right), 1e-4);

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    thrust::sort(thrust::cuda::par.on(stream), x.begin(), x.end());
    std::vector<float> sorted(host.size()), expected = host;
    thrust::copy(x.begin(), x.end(), sorted.begin());
    std::sort(expected.begin(), expected.end());
    std::printf("sort: %s\n", sorted == expected ? "right" : "WRONG");

    thrust::inclusive_scan(x.begin(), x.end(), x.begin());
    const float last = x.back();  // one element, and a copy from the GPU
    require("last running sum", std::fabs(last - std::accumulate(host.begin(), host.end(), 0.0)),
            1e-3);
    CHECK(cudaStreamDestroy(stream));
    return sorted == expected ? 0 : 1;
}
