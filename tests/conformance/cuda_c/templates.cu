// Kernel templates: a type, a value, a template argument list with commas, and deduction.
#include <cstdio>

template <typename T, int N>
__global__ void scale(T* data) {
    data[threadIdx.x] *= T(N);
}

template <class A, class B>
struct Pair {
    A first;
    B second;
};

template <class A, class B>
__global__ void combine(Pair<A, B>* out, A a, B b) {
    out[threadIdx.x] = Pair<A, B>{A(a + threadIdx.x), B(b * 2)};
}

template <typename T, int... Values>
__global__ void sum_of(T* out) {
    *out = (T(Values) + ... + T(0));
}

template <bool Negate>
__global__ void maybe_negate(int* data) {
    if constexpr (Negate)
        data[threadIdx.x] = -data[threadIdx.x];
}

int main() {
    int* ints;
    float* floats;
    Pair<int, double>* pairs;
    cudaMallocManaged(&ints, 4 * sizeof(int));
    cudaMallocManaged(&floats, 4 * sizeof(float));
    cudaMallocManaged(&pairs, 4 * sizeof(Pair<int, double>));
    for (int i = 0; i < 4; i++)
        ints[i] = i + 1, floats[i] = 0.5f * i;
    scale<int, 3><<<1, 4>>>(ints);
    scale<float, (4 > 3 ? 5 : 6)><<<dim3(1, 1), dim3(4, 1)>>>(floats);
    combine<int, double><<<1, 4>>>(pairs, 10, 1.25);
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; i++)
        printf("%d %.1f %d %.2f\n", ints[i], floats[i], pairs[i].first, pairs[i].second);
    combine<<<1, 4>>>(pairs, 20, 0.75);
    sum_of<int, 1, 2, 3, 4><<<1, 1>>>(ints);
    maybe_negate<true><<<1, 2>>>(ints);
    maybe_negate<false><<<1, 4>>>(ints);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", ints[0], ints[1], ints[2], pairs[3].first);
    cudaFree(ints);
    cudaFree(floats);
    cudaFree(pairs);
}
