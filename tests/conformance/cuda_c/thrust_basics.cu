// flags: --extended-lambda
// Thrust: vectors, copies, transformations, reductions, iterators, functors and lambdas.
#include <cstdio>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

struct saxpy {
    float a;
    __host__ __device__ float operator()(float x, float y) const {
        return a * x + y;
    }
};

struct square {
    __host__ __device__ int operator()(int x) const {
        return x * x;
    }
};

__global__ void twice(int* p, int n) {
    if (threadIdx.x < n)
        p[threadIdx.x] *= 2;
}

int main() {
    thrust::host_vector<int> h(5, 3);
    h[2] = 7;
    h.push_back(9);
    thrust::device_vector<int> d = h;
    d[0] = 100;
    thrust::host_vector<int> back = d;
    for (int x : back)
        printf("%d ", x);
    printf("size %zu\n", d.size());
    thrust::sequence(d.begin(), d.end(), 1);
    twice<<<1, 32>>>(thrust::raw_pointer_cast(d.data()), (int)d.size());
    cudaDeviceSynchronize();
    printf("%d %d\n", thrust::reduce(d.begin(), d.end()),
           thrust::reduce(d.begin(), d.end(), 0, thrust::maximum<int>()));
    thrust::device_vector<float> x(4), y(4, 10.0f);
    thrust::sequence(x.begin(), x.end());
    thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), saxpy{2.0f});
    thrust::transform(x.begin(), x.end(), x.begin(), thrust::negate<float>());
    for (int i = 0; i < 4; i++)
        printf("%g %g ", (float)x[i], (float)y[i]);
    printf("\n");
    auto first = thrust::counting_iterator<int>(1);
    printf("%d ", thrust::transform_reduce(first, first + 10, square(), 0, thrust::plus<int>()));
    printf("%g ", thrust::inner_product(x.begin(), x.end(), y.begin(), 0.0f));
    printf("%d ", (int)thrust::count(h.begin(), h.end(), 3));
    printf("%d ",
           (int)thrust::count_if(d.begin(), d.end(), [] __device__(int v) { return v > 5; }));
    printf("%d\n", (int)(thrust::max_element(y.begin(), y.end()) - y.begin()));
    int* raw;
    cudaMalloc(&raw, 4 * sizeof(int));
    thrust::device_ptr<int> p(raw);
    thrust::fill(p, p + 4, 5);
    p[1] = 6;
    thrust::fill(thrust::device, raw + 2, raw + 3, 8);
    int host[4];
    thrust::copy(p, p + 4, host);
    printf("%d %d %d %d %d\n", host[0], host[1], host[2], host[3],
           thrust::reduce(thrust::device, raw, raw + 4));
    thrust::for_each(thrust::device, raw, raw + 4, [] __device__(int& v) { v += 1; });
    printf("%d\n", (int)p[3]);
    cudaFree(raw);
}
