// Values of templates with several arguments, where an integer is made of them.
#include <cstdio>
#include <type_traits>

template <typename T, typename U>
constexpr bool same = std::is_same_v<T, U>;

template <typename T>
__device__ int bytes() {
    return same<T, double> ? 8 : 4;
}

__global__ void values(int* out, int a, int b) {
    int i = same<int, int>, j = same<int, float> && a;
    out[0] = same<float, float>;
    out[1] = i == 1 && j == 0;
    out[2] = same<int, int> == true;
    out[3] = bytes<double>() + bytes<float>();
    int less = a<b, more = b> a;
    out[4] = less + 10 * more;
}

int main() {
    int* out;
    cudaMallocManaged(&out, 5 * sizeof(int));
    values<<<1, 1>>>(out, 2, 3);
    printf("%s", cudaGetErrorName(cudaDeviceSynchronize()));
    for (int i = 0; i < 5; i++)
        printf(" %d", out[i]);
    printf("\n");
    cudaFree(out);
}
