// flags: --extended-lambda
// Thrust: vectors that host and device share, and operations on sorted sets.
#include <cstdio>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/set_operations.h>
#include <thrust/transform.h>
#include <thrust/universal_vector.h>

__global__ void raise(int* numbers, int n) {
    if (threadIdx.x < n)
        numbers[threadIdx.x] += 100;
}

template <class Vector>
void show(const char* name, const Vector& v, size_t n) {
    printf("%s:", name);
    for (size_t i = 0; i < n; i++)
        printf(" %d", v[i]);
    printf("\n");
}

int main() {
    thrust::universal_vector<int> v{5, 7, 9};
    int& first = v[0];
    first = 6;
    thrust::transform(thrust::device, v.begin(), v.end(), v.begin(),
                      [] __device__(int x) { return 2 * x; });
    cudaDeviceSynchronize();
    show("doubled", v, v.size());
    raise<<<1, 32>>>(thrust::raw_pointer_cast(v.data()), int(v.size()));
    cudaDeviceSynchronize();
    v.push_back(1);
    show("raised", v, v.size());
    thrust::device_vector<int> on_device = v;
    thrust::host_vector<int> on_host = v;
    printf("sums: %d %d\n", thrust::reduce(on_device.begin(), on_device.end()),
           thrust::reduce(on_host.begin(), on_host.end()));

    thrust::universal_vector<int> a{1, 3, 5, 7, 9}, b{1, 4, 5, 8}, out(9);
    auto end = thrust::set_union(a.begin(), a.end(), b.begin(), b.end(), out.begin());
    show("union", out, end - out.begin());
    end = thrust::set_intersection(a.begin(), a.end(), b.begin(), b.end(), out.begin());
    show("intersection", out, end - out.begin());
    end = thrust::set_difference(a.begin(), a.end(), b.begin(), b.end(), out.begin());
    show("difference", out, end - out.begin());
    end = thrust::set_symmetric_difference(thrust::device, a.begin(), a.end(), b.begin(), b.end(),
                                           out.begin(), thrust::less<int>());
    show("in one only", out, end - out.begin());
}
