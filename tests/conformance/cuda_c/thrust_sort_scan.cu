// Thrust: sorts, scans, stream compaction, runs.
#include <cstdio>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

struct odd {
    __host__ __device__ bool operator()(int x) const {
        return x % 2 != 0;
    }
};

template <typename V>
void show(const V& v, size_t n) {
    for (size_t i = 0; i < n; i++)
        printf("%d ", (int)v[i]);
    printf("\n");
}

int main() {
    const int n = 10, values[n] = {5, 3, 8, 1, 9, 2, 8, 3, 7, 3};
    thrust::device_vector<int> a(values, values + n), keys = a, b(n), index(n);
    thrust::sort(a.begin(), a.end());
    show(a, n);
    thrust::sort(a.begin(), a.end(), thrust::greater<int>());
    show(a, n);
    thrust::sequence(index.begin(), index.end());
    thrust::device_vector<int> k = keys;
    thrust::stable_sort_by_key(k.begin(), k.end(), index.begin());
    show(index, n);
    thrust::inclusive_scan(keys.begin(), keys.end(), b.begin());
    show(b, n);
    thrust::exclusive_scan(keys.begin(), keys.end(), b.begin(), 100);
    show(b, n);
    thrust::inclusive_scan(keys.begin(), keys.end(), b.begin(), thrust::maximum<int>());
    show(b, n);
    auto end = thrust::copy_if(keys.begin(), keys.end(), b.begin(), odd());
    show(b, end - b.begin());
    thrust::device_vector<int> c = k;
    c.erase(thrust::unique(c.begin(), c.end()), c.end());
    show(c, c.size());
    c.erase(thrust::remove_if(c.begin(), c.end(), odd()), c.end());
    show(c, c.size());
    thrust::device_vector<int> unique_keys(n), sums(n), ones(n, 1);
    auto ends =
        thrust::reduce_by_key(k.begin(), k.end(), ones.begin(), unique_keys.begin(), sums.begin());
    show(unique_keys, ends.first - unique_keys.begin());
    show(sums, ends.second - sums.begin());
}
