// Thrust on C arrays and with plain functions; scans and merges by key; stencils; output iterators.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/generate.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/merge.h>
#include <thrust/mismatch.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sort.h>

int next() {
    static int last = 0;
    return last += 3;
}

struct Even {
    __host__ __device__ bool operator()(int x) const {
        return x % 2 == 0;
    }
};
struct Twice {
    __host__ __device__ int operator()(int x) {
        return 2 * x;
    }
};
struct SameTen {
    __host__ __device__ bool operator()(int a, int b) const {
        return a / 10 == b / 10;
    }
};

template <class V>
void show(const V& v) {
    for (int x : v)
        printf("%d ", x);
    printf("\n");
}

int main() {
    int a[6] = {1, 4, 2, 8, 5, 7};
    thrust::sort(thrust::host, a, a + 6);
    show(a);
    printf("%d %d\n", thrust::reduce(a, a + 6), thrust::reduce(thrust::host, a, a + 6, 10));
    thrust::generate(a, a + 6, next);
    show(a);
    printf("%d %d\n", thrust::min(3, 2), thrust::max(3, 2));

    int keys[6] = {11, 12, 21, 22, 23, 31}, values[6] = {1, 2, 3, 4, 5, 6}, out[6];
    thrust::inclusive_scan_by_key(keys, keys + 6, values, out, SameTen(), thrust::plus<int>());
    show(out);
    thrust::exclusive_scan_by_key(keys, keys + 6, values, out, 100, SameTen());
    show(out);
    thrust::inclusive_scan(values, values + 6, out, 1, thrust::multiplies<int>());
    show(out);

    int more[3] = {9, 12, 40}, names[3] = {7, 8, 9}, merged[9], of_merged[9];
    thrust::merge_by_key(keys, keys + 6, more, more + 3, values, names, merged, of_merged);
    show(merged);
    show(of_merged);

    int to[4] = {3, 2, 1, 0}, stencil[4] = {0, 1, 1, 0}, scattered[4] = {-1, -1, -1, -1};
    thrust::scatter_if(values, values + 4, to, stencil, scattered);
    show(scattered);
    thrust::device_vector<int> d(values, values + 6), s(keys, keys + 6);
    thrust::stable_partition(d.begin(), d.end(), s.begin(), Even());
    thrust::copy(d.begin(), d.end(), std::ostream_iterator<int>(std::cout, ","));
    std::cout << std::endl;
    int odd[6], even[6];
    auto ends = thrust::stable_partition_copy(values, values + 6, even, odd, Even());
    printf("%d %d %d %d\n", int(ends.first - even), int(ends.second - odd), even[2], odd[2]);
    auto apart = thrust::mismatch(values, values + 6, stencil);
    printf("%d\n", int(apart.first - values));

    auto doubled = thrust::make_transform_iterator(thrust::counting_iterator<int>(5), Twice());
    printf("%d %d\n", *doubled, *(doubled + 3));
    thrust::discard_iterator<> nowhere;
    *nowhere = 3;
    auto same = thrust::device_pointer_cast(d.data());
    printf("%d %d\n", (int)*same, int(same == d.data()));
}
