// The ways in which real programs write launches, qualifiers and shared memory. Prints one line a
// feature.
#include <cuda.h>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>
#include "shapes.cuh"
using namespace std;

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = call;                                                          \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(EXIT_FAILURE);                                                            \
        }                                                                                  \
    } while (0)

const int N = 200;
__constant__ float weights[4];
__device__ __constant__ int offset = 5;
__device__ int counter;
__managed__ int managed_total = 0;
__device__ float (*chosen)(float);

__device__ float twice(float x) {
    return 2 * x;
}
__device__ float (*const device_twice)(float) = twice;

__global__ void ramp(int* a, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    a[i] = value + i;
}
extern "C" __global__ void c_linkage(int* a) {
    a[threadIdx.x] += offset;
}
void __global__ qualifier_behind(int* a) {
    a[0] = 7;
}
__launch_bounds__(64, 2) __global__ void bounds_before(int* a) {
    a[1] = 8;
}
__global__ void __launch_bounds__(64) bounds_behind(int* __restrict__ a) {
    a[2] = 9;
}

template <typename T, int Width>
__global__ void sums(const T* in, T* out) {
    __shared__ T tile[Width][Width + 1], total;
    T* dynamic = SharedMemory<T>();
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * Width + x];
    dynamic[y * Width + x] = tile[y][x];
    if (x == 0 && y == 0)
        total = 0;
    __syncthreads();
    atomicAdd(&total, tile[x][y] + dynamic[x * Width + y]);
    __syncthreads();
    if (x + y == 0)
        *out = total;
}
template <>
__global__ void sums<short, 2>(const short*, short* out) {
    *out = -1;
}

template <class F>
__global__ void apply(F f, int* a, int n) {
    int i = threadIdx.x;
    if (i < n)
        a[i] = f(a[i]);
}
template <typename... Ts>
__global__ void pack(int* out, Ts... values) {
    *out = (0 + ... + values);
}

template <unsigned int blockSize>
__global__ void reduce(const int* in, int* out) {
    extern __shared__ int sdata[];
    unsigned tid = threadIdx.x;
    sdata[tid] = in[tid];
    __syncthreads();
    if (blockSize >= 128) {
        if (tid < 64) {
            sdata[tid] += sdata[tid + 64];
        }
        __syncthreads();
    }
    for (unsigned s = 32; s > 0; s >>= 1) {
        if (tid < s)
            sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0)
        *out = sdata[0];
}

__global__ void default_argument(int* out, int a, int b = 4) {
    *out = a * b;
}
__global__ void overloaded(int* out) {
    *out = 1;
}
__global__ void overloaded(float* out) {
    *out = 2.5f;
}

class Simulation {
  public:
    Simulation() {
        CHECK(cudaMalloc((void**)&data_, N * sizeof(int)));
    }
    ~Simulation() {
        cudaFree(data_);
    }
    int run() {
        auto step = [this](int value) {
            ramp<<<(N + 63) / 64,  // over several lines
                   64>>>(data_, value, N);
        };
        step(3);
        int last;
        CHECK(cudaMemcpy(&last, data_ + N - 1, sizeof(int), cudaMemcpyDeviceToHost));
        return last;
    }

  private:
    int* data_;
};

__global__ void child(int* a) {
    atomicAdd(a, threadIdx.x);
}
__global__ void parent(int* a) {
    if (threadIdx.x == 0)
        child<<<2, 4>>>(a);
}
__global__ void heap(int* out) {
    int* p = new int[8];
    for (int i = 0; i < 8; i++)
        p[i] = i * threadIdx.x;
    int* q = (int*)malloc(4);
    *q = p[7];
    atomicAdd(out, *q);
    free(q);
    delete[] p;
}
__global__ void flow(int* out) {
    int n = 0;
    switch (threadIdx.x) {
        case 0:
            n = 10;
            break;
        default:
            goto end;
    }
    n++;
end:
    if (threadIdx.x < 2)
        out[threadIdx.x] = n;
    else
        return;
}
union Bits {
    float f;
    unsigned u;
};
enum class Mode { A, B };
template <Mode mode>
__global__ void by_enum(int* a) {
    *a = mode == Mode::B ? 2 : 1;
}
__global__ void message(int n) {
    printf("%s from %d\n", n > 1 ? "hello" : "bye", threadIdx.x);
}

int main(int argc, char** argv) {
    int *d, h[N];
    CHECK(cudaMalloc(&d, N * sizeof(int)));
    dim3 grid(2), block{32, 1, 1};
    LAUNCH(ramp, N, d, 100, N);
    CHECK(cudaPeekAtLastError());
    CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    printf("macro launch %d %d\n", h[0], h[N - 1]);

    c_linkage<<<1, 2>>>(d);
    qualifier_behind<<<1, 1, 0>>>(d + 2);
    bounds_before<<<1, 1, 0, 0>>>(d + 2);
    bounds_behind<<<1, 1, 0, (cudaStream_t)0>>>(d + 2);
    cudaMemcpy(h, d, 6 * sizeof(int), cudaMemcpyDeviceToHost);
    printf("qualifiers %d %d %d %d %d\n", h[0], h[1], h[2], h[3], h[4]);

    float *f, hf[16], r;
    CHECK(cudaMalloc(&f, sizeof hf));
    for (int i = 0; i < 16; i++)
        hf[i] = i;
    cudaMemcpy(f, hf, sizeof hf, cudaMemcpyHostToDevice);
    sums<float, 4><<<dim3(1), dim3(4, 4), 16 * sizeof(float)>>>(f, f);
    cudaMemcpy(&r, f, sizeof r, cudaMemcpyDeviceToHost);
    sums<short, 2><<<1, 1>>>((short*)d, (short*)d);
    short minus;
    cudaMemcpy(&minus, d, 2, cudaMemcpyDeviceToHost);
    printf("templates %g %d\n", r, minus);

    cudaMemset(d, 0, N * sizeof(int));
    int k = 3;
    apply<<<1, 8>>>([=] __device__(int v) { return v + k; }, d, 8);
    apply<<<1, std::max<int>(1, 8)>>>([k] __host__ __device__(int v) -> int { return v * k; }, d,
                                      8);
    pack<<<1, 1>>>(d + 1, 1, 2, 3);
    cudaMemcpy(h, d, 8, cudaMemcpyDeviceToHost);
    printf("lambdas %d %d\n", h[0], h[1]);

    ramp<<<1, 128>>>(d, 0, 128);
    switch (128) {
        case 128:
            reduce<128><<<1, 128, 128 * sizeof(int)>>>(d, d + 128);
            break;
        case 64:
            reduce<64><<<1, 64, 64 * sizeof(int)>>>(d, d + 128);
            break;
    }
    cudaMemcpy(h, d + 128, 4, cudaMemcpyDeviceToHost);
    printf("reduce %d\n", h[0]);

    default_argument<<<1, 1>>>(d, 5);
    overloaded<<<1, 1>>>(d + 1);
    overloaded<<<1, 1>>>((float*)(d + 2));
    cudaMemcpy(h, d, 12, cudaMemcpyDeviceToHost);
    printf("overloads %d %d %g\n", h[0], h[1], *(float*)&h[2]);

    printf("class %d\n", Simulation().run());

    float w[4] = {1, 2, 3, 4}, back[4];
    CHECK(cudaMemcpyToSymbol(weights, w, sizeof(w)));
    CHECK(cudaMemcpyFromSymbol(back, weights, 2 * sizeof(float), 2 * sizeof(float)));
    int zero = 0;
    cudaMemcpyToSymbol(counter, &zero, sizeof(int));
    printf("symbols %g %g\n", back[0], back[1]);

    void (*pointer)(int*, int, int) = ramp;
    pointer<<<grid, block>>>(d, 40, 64);
    vector<function<void()>> later;
    later.push_back([&] { ramp<<<grid, block>>>(d + 64, 50, 64); });
    for (auto& l : later)
        l();
    int n = 64, value = 7;
    void* args[] = {&d, &value, &n};
    CHECK(cudaLaunchKernel((void*)ramp, dim3(1), dim3(32), args, 0, NULL));
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("pointers %d %d %d\n", h[0], h[63], h[64]);

    cudaMemset(d, 0, 8);
    parent<<<1, 32>>>(d);
    heap<<<1, 4>>>(d + 1);
    CHECK(cudaDeviceSynchronize());
    cudaMemcpy(h, d, 8, cudaMemcpyDeviceToHost);
    printf("nested %d heap %d\n", h[0], h[1]);

    flow<<<1, 3>>>(d);
    by_enum<Mode::B><<<1, 1>>>(d + 2);
    cudaMemcpy(h, d, 12, cudaMemcpyDeviceToHost);
    printf("flow %d %d %d\n", h[0], h[1], h[2]);

    shapes::Point* p;
    CHECK(cudaMallocManaged(&p, 3 * sizeof(shapes::Point)));
    p[0] = shapes::Point(3, 3);
    shapes::norms<<<1, 32>>>(p, f, 1);
    cudaMemcpy(&r, f, 4, cudaMemcpyDeviceToHost);
    printf("header %g\n", r);

    vector<thread> threads;
    vector<int> got(4);
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&got, t] {
            int* mine;
            cudaStream_t s;
            cudaStreamCreate(&s);
            cudaMalloc(&mine, 64 * sizeof(int));
            for (int i = 0; i < 20; i++)
                ramp<<<2, 32, 0, s>>>(mine, t * 100, 64);
            cudaMemcpyAsync(&got[t], mine + 63, 4, cudaMemcpyDeviceToHost, s);
            cudaStreamSynchronize(s);
            cudaFree(mine);
            cudaStreamDestroy(s);
        });
    for (auto& t : threads)
        t.join();
    printf("threads %d %d %d %d\n", got[0], got[1], got[2], got[3]);

    size_t pitch;
    char* image;
    CHECK(cudaMallocPitch(&image, &pitch, 100, 10));
    CHECK(cudaMemcpy2D(image, pitch, h, 100, 100, 2, cudaMemcpyHostToDevice));
    cudaDeviceProp prop;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    std::cout << "properties " << (pitch >= 100) << " " << prop.warpSize << " "
              << prop.maxThreadsPerBlock << std::endl;
    message<<<1, 2>>>(2);
    cout << "before" << endl;
    CHECK(cudaDeviceSynchronize());
    printf("%s\n", __CUDACC_VER_MAJOR__ >= 12 ? "done" : "old");
    cudaFree(d);
    cudaFree(f);
    cudaFree(p);
    cudaFree(image);
    return 0;
}
