// libcu++: the standard library's types and functions in a kernel.
#include <cstdio>
#include <cuda/cmath>
#include <cuda/functional>
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

__global__ void use(cuda::std::span<int> out) {
    cuda::std::array<int, 4> four{1, 2, 3, 4};
    int sum = 0;
    for (int x : four)
        sum += x;
    out[0] = sum;
    auto [a, b] = cuda::std::make_tuple(6, 7);
    out[1] = a * b;
    cuda::std::complex<float> z(1, 2);
    z *= z;
    out[2] = int(z.real()) * 100 + int(z.imag());
    out[3] = cuda::std::numeric_limits<int>::max();
    out[4] = cuda::std::popcount(0xf0f0u) * 100 + cuda::std::countl_zero(1u);
    out[5] = int(cuda::std::bit_cast<unsigned>(1.0f) >> 23);
    cuda::std::optional<int> maybe;
    out[6] = maybe.value_or(-1);
    out[7] = cuda::ceil_div(10, 3) * 10 + cuda::maximum<int>()(3, 8);
    static_assert(cuda::std::is_same_v<cuda::std::remove_const_t<const int>, int>);
    cuda::std::pair<int, int> swapped(1, 2);
    cuda::std::swap(swapped.first, swapped.second);
    out[8] = swapped.first * 10 + swapped.second;
    out[9] = int(out.subspan(2, 5).size());
}
int main() {
    int* out;
    cudaMallocManaged(&out, 10 * sizeof(int));
    use<<<1, 1>>>(cuda::std::span<int>(out, 10));
    cudaDeviceSynchronize();
    for (int i = 0; i < 10; ++i)
        printf("%d ", out[i]);
    printf("\n%s\n", cudaGetErrorName(cudaGetLastError()));
    cudaFree(out);
}
