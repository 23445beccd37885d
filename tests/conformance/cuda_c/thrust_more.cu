// Thrust: gathers, scatters, zips, permutations, merges, partitions, searches, placeholders,
// policies, keys.
#include <cstdio>
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/find.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/logical.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/replace.h>
#include <thrust/reverse.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/transform_scan.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

using namespace thrust::placeholders;

struct dot2 {
    __host__ __device__ int operator()(const thrust::tuple<int, int>& t) const {
        return thrust::get<0>(t) * thrust::get<1>(t);
    }
};
struct even {
    __host__ __device__ bool operator()(int x) const {
        return x % 2 == 0;
    }
};
struct plus_index {
    __host__ __device__ int operator()(int i) const {
        return 10 * i;
    }
};

template <typename V>
void show(const V& v) {
    for (size_t i = 0; i < v.size(); i++)
        printf("%d ", (int)v[i]);
    printf("\n");
}

int main() {
    thrust::host_vector<int> h(8);
    for (int i = 0; i < 8; i++)
        h[i] = (i * 5 + 3) % 8;
    thrust::device_vector<int> a = h, b(8), map(8);
    thrust::sequence(map.begin(), map.end(), 7, -1);
    thrust::gather(map.begin(), map.end(), a.begin(), b.begin());
    show(b);
    thrust::scatter(a.begin(), a.end(), map.begin(), b.begin());
    show(b);
    auto zip = thrust::make_zip_iterator(thrust::make_tuple(a.begin(), map.begin()));
    printf("%d\n", thrust::transform_reduce(zip, zip + 8, dot2(), 0, thrust::plus<int>()));
    thrust::sort(zip, zip + 8);
    show(a);
    show(map);
    auto picked = thrust::make_permutation_iterator(a.begin(), map.begin());
    printf("%d %d\n", thrust::reduce(picked, picked + 3), (int)picked[7]);
    thrust::transform(a.begin(), a.end(), map.begin(), b.begin(), 2 * _1 - _2);
    show(b);
    thrust::device_vector<int> c(16), d(16);
    thrust::merge(a.begin(), a.end(), thrust::counting_iterator<int>(2),
                  thrust::counting_iterator<int>(10), c.begin());
    show(c);
    auto middle = thrust::stable_partition(c.begin(), c.end(), even());
    printf("%d: ", int(middle - c.begin()));
    show(c);
    printf("%d %d\n", int(thrust::lower_bound(a.begin(), a.end(), 5) - a.begin()),
           (int)thrust::binary_search(a.begin(), a.end(), 9));
    thrust::inclusive_scan_by_key(c.begin(), c.end(), thrust::make_constant_iterator(1), d.begin());
    show(d);
    thrust::tabulate(a.begin(), a.end(), plus_index());
    thrust::adjacent_difference(a.begin(), a.end(), b.begin());
    thrust::replace_if(a.begin(), a.end(), _1 > 50, -1);
    thrust::reverse(a.begin(), a.end());
    show(a);
    show(b);
    auto ends = thrust::minmax_element(a.begin(), a.end());
    printf("%d %d %d\n", (int)*ends.first, (int)*ends.second,
           int(thrust::find(a.begin(), a.end(), 20) - a.begin()));
    printf("%d %d %d\n", (int)thrust::all_of(a.begin(), a.end(), _1 < 51),
           (int)thrust::any_of(a.begin(), a.end(), _1 == 7),
           (int)thrust::none_of(a.begin(), a.end(), _1 == 7));
    thrust::transform_exclusive_scan(a.begin(), a.end(), b.begin(), thrust::negate<int>(), 1,
                                     thrust::plus<int>());
    show(b);
    thrust::device_vector<int> keys(
        thrust::make_transform_iterator(thrust::counting_iterator<int>(0), _1 / 3),
        thrust::make_transform_iterator(thrust::counting_iterator<int>(8), _1 / 3));
    auto sums = thrust::reduce_by_key(keys.begin(), keys.end(), thrust::counting_iterator<int>(0),
                                      thrust::make_discard_iterator(), b.begin());
    printf("%d %d %d\n", (int)b[0], (int)b[1], (int)b[2]);
    printf("%d\n", int(sums.second - b.begin()));
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    thrust::sort(thrust::cuda::par.on(stream), a.begin(), a.end(), thrust::greater<int>());
    printf("%d %d\n", (int)a.front(), (int)a.back());
    cudaStreamDestroy(stream);
    a.insert(a.begin() + 1, 99);
    a.resize(10, 5);
    show(a);
}
