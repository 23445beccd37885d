// flags: --extended-lambda
// Lambdas given to kernels: by value, with captures, generic kernels over functors, lambdas in
// device code.
#include <cstdio>

template <class F>
__global__ void for_each(int n, F f) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        f(i);
}

struct Affine {
    float a, b;
    __device__ float operator()(float x) const {
        return a * x + b;
    }
};

template <class F, class G>
__global__ void compose(float* x, F f, G g) {
    auto both = [&](float v) { return f(g(v)); };
    x[threadIdx.x] = both(x[threadIdx.x]);
}

template <class T>
class Field {
    T* data;
    int n;

  public:
    Field(int n) : n(n) {
        cudaMallocManaged(&data, n * sizeof(T));
    }
    ~Field() {
        cudaFree(data);
    }
    void fill(T value) {
        T* p = data;
        for_each<<<2, 4>>>(n, [=] __device__(int i) { p[i] = value + i; });
        cudaDeviceSynchronize();
    }
    T sum() const {
        T s = 0;
        for (int i = 0; i < n; i++)
            s += data[i];
        return s;
    }
};

int main() {
    int *x, factor = 3;
    float* y;
    cudaMallocManaged(&x, 10 * sizeof(int));
    cudaMallocManaged(&y, 4 * sizeof(float));
    for_each<<<1, 32>>>(10, [=] __device__(int i) { x[i] = i * factor; });
    for_each<<<2, 3>>>(10, [x] __host__ __device__(int i) mutable { x[i] += 100; });
    for (int i = 0; i < 4; i++)
        y[i] = i;
    compose<<<1, 4>>>(y, Affine{2, 1}, [] __device__(float v) { return v * v; });
    cudaDeviceSynchronize();
    printf("%d %d %d  %g %g\n", x[0], x[5], x[9], y[1], y[3]);
    Field<double> field(10);
    field.fill(0.5);
    printf("%g\n", field.sum());
    cudaFree(x);
    cudaFree(y);
}
