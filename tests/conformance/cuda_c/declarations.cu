// Kernels and device functions declared in every order of words, ahead, in namespaces, by macros
// and by aliases.
#include <cstdio>

#define DEFINE_KERNEL(name, factor) \
    __global__ void name(int* x) {  \
        x[threadIdx.x] *= factor;   \
    }
#define KERNEL __global__ void
#define MAX_THREADS 64

DEFINE_KERNEL(times_two, 2)
DEFINE_KERNEL(times_three, 3)

void __global__ add_one(int* x);
static __global__ void add_ten(int* __restrict__ x) {
    x[threadIdx.x] += 10;
}
extern "C" __global__ void add_hundred(int* x) {
    x[threadIdx.x] += 100;
}
KERNEL __launch_bounds__(MAX_THREADS) add_thousand(int* const x, const int /* unnamed */, int = 5) {
    x[threadIdx.x] += 1000;
}
namespace {
__global__ void hidden(int* x) {
    x[threadIdx.x] = -x[threadIdx.x];
}
}  // namespace
namespace a::b {
__device__ __forceinline__ int half(int v);
__global__ void halve(int* x) {
    x[threadIdx.x] = half(x[threadIdx.x]);
}
inline __device__ int half(int v) {
    return v / 2;
}
}  // namespace a::b

__device__ __noinline__ static int noisy(int v) {
    return v ^ 1;
}
__device__ const int table[3] = {7, 8, 9};
const __device__ float scale = 0.5f;
static constexpr int offset = 4;
__constant__ const int limits[] = {1, 2, 3};
__device__ int *where = nullptr, counter;
__device__ volatile int flag = 3;
typedef int (*Reader)(int);
struct Outer {
    struct Inner {
        static __device__ int twice(int v) {
            return 2 * v;
        }
    };
    enum { count = 3 };
    using Pointer = int*;
};

template <class T = float, int N = 2>
__global__ void defaults(T* x) {
    x[threadIdx.x] += N;
}
template <>
__global__ void defaults<int, 5>(int* x) {
    x[threadIdx.x] = 55;
}
template __global__ void defaults<int, 2>(int*);

__global__ void add_one(int* x) {
    x[threadIdx.x] += noisy(0) + counter + (where != nullptr);
    if (threadIdx.x == 0)
        x[0] += table[2] + int(scale * 4) + offset + limits[1] + Outer::Inner::twice(flag) +
                Outer::count;
}

int main() {
    int* x;
    cudaMallocManaged(&x, 4 * sizeof(int));
    for (int i = 0; i < 4; i++)
        x[i] = i;
    times_two<<<1, 4>>>(x);
    times_three<<<1, 4>>>(x);
    add_one<<<1, 4>>>(x);
    add_ten<<<1, 4>>>(x);
    add_hundred<<<1, 4>>>(x);
    add_thousand<<<1, 4>>>(x, 0);
    hidden<<<1, 4>>>(x);
    a::b::halve<<<1, 4>>>(x);
    Outer::Pointer same = x;
    void (*pointer)(int*) = add_ten;
    pointer<<<1, 4>>>(same);
    void (*list[])(int*) = {times_two, times_three, hidden};
    for (auto kernel : list)
        kernel<<<1, 4>>>(x);
    auto chosen = defaults<int>;
    chosen<<<1, 4>>>(x);
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; i++)
        printf("%d ", x[i]);
    defaults<int, 5><<<1, 2>>>(x);
    cudaDeviceSynchronize();
    printf("%d %d\n", x[0], x[1]);
    cudaFree(x);
}
