// Included by language.cu: kernels, device code and launches live in headers too.
#pragma once
#define DIVUP(a, b) (((a) + (b) - 1) / (b))
#define LAUNCH(kernel, n, ...) kernel<<<DIVUP(n, 64), 64>>>(__VA_ARGS__)

template <class T>
struct SharedMemory {  // the usual way around extern arrays of different types
    __device__ inline operator T*() {
        extern __shared__ int shared_words[];
        return (T*)shared_words;
    }
};

namespace shapes {
struct Point {
    float x, y;
    __host__ __device__ Point(float x_ = 0, float y_ = 0) : x(x_), y(y_) {}
    __host__ __device__ Point operator+(const Point& o) const {
        return Point(x + o.x, y + o.y);
    }
    __device__ __forceinline__ float norm() const {
        return sqrtf(x * x + y * y);
    }
};
static __global__ void norms(const Point* p, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = (p[i] + Point(0, 1)).norm();
}
}  // namespace shapes
