// Times of the CPU engine: each kernel's result is checked, then the best of some runs is printed,
// "name milliseconds".
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

const int N = 1 << 20, M = 512, W = 1024;

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
__global__ void matmul(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[row * n + i] * b[i * n + column];
    c[row * n + column] = sum;
}
__global__ void tiled_matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float tile_a[16][16], tile_b[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int t = 0; t < n / 16; t++) {
        tile_a[y][x] = a[row * n + t * 16 + x];
        tile_b[y][x] = b[(t * 16 + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
__global__ void block_reduction(const float* a, float* out) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = a[blockIdx.x * 256 + t];
    __syncthreads();
    for (int k = 128; k; k >>= 1) {
        if (t < k)
            s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0)
        atomicAdd(out, s[0]);
}
__global__ void shuffle_reduction(const float* a, float* out) {
    float v = a[blockIdx.x * 256 + threadIdx.x];
    for (int o = 16; o; o >>= 1)
        v += __shfl_down_sync(0xffffffff, v, o);
    if (threadIdx.x % 32 == 0)
        atomicAdd(out, v);
}
__global__ void histogram(const unsigned char* a, unsigned* out, int n) {
    __shared__ unsigned h[256];
    h[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x)
        atomicAdd(&h[a[i]], 1u);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], h[threadIdx.x]);
}
__global__ void transpose(const float* a, float* b, int n) {
    __shared__ float s[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        s[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        b[(y + j) * n + x] = s[threadIdx.x][threadIdx.y + j];
}
__global__ void barriers(int n) {
    for (int i = 0; i < n; i++)
        __syncthreads();
}
__global__ void nothing() {}

template <class F>
double best(F f, int runs = 7) {
    double least = 1e30;
    f();
    for (int i = 0; i < runs; i++) {
        auto start = std::chrono::steady_clock::now();
        f();
        cudaDeviceSynchronize();
        least = std::fmin(least, std::chrono::duration<double, std::milli>(
                                     std::chrono::steady_clock::now() - start)
                                     .count());
    }
    return least;
}
void need(bool right, const char* what) {
    if (right)
        return;
    printf("%s is wrong\n", what);
    exit(1);
}

int main() {
    std::vector<float> x(N), y(N), z(N);
    std::vector<unsigned char> bytes(N);
    std::vector<unsigned> counts(256), expected(256);
    for (int i = 0; i < N; i++) {
        x[i] = float(i * 7 % 64) / 64;
        y[i] = float(i * 5 % 32) / 32;
        bytes[i] = (unsigned char)(i * 7919u >> 8);
        expected[bytes[i]]++;
    }
    float *a, *b, *c;
    unsigned char* u;
    unsigned* h;
    cudaMalloc(&a, N * 4), cudaMalloc(&b, N * 4), cudaMalloc(&c, N * 4), cudaMalloc(&u, N),
        cudaMalloc(&h, 1024);
    cudaMemcpy(a, x.data(), N * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(b, y.data(), N * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(u, bytes.data(), N, cudaMemcpyHostToDevice);
    auto result = [&] { cudaMemcpy(z.data(), c, N * 4, cudaMemcpyDeviceToHost); };
    dim3 grid(M / 16, M / 16), block(16, 16);

    double t = best([&] { vector_add<<<N / 256, 256>>>(a, b, c, N); });
    result();
    for (int i = 0; i < N; i++)
        need(z[i] == x[i] + y[i], "vector_add");
    printf("vector_add_1M %.3f\n", t);

    auto product = [&](const char* name) {
        result();
        for (int i = 0; i < M * M; i += 997) {
            double s = 0;
            for (int k = 0; k < M; k++)
                s += double(x[i / M * M + k]) * y[k * M + i % M];
            need(std::fabs(z[i] - s) < 1e-3, name);
        }
    };
    t = best([&] { matmul<<<grid, block>>>(a, b, c, M); });
    product("matmul");
    printf("matmul_512 %.3f\n", t);
    t = best([&] { tiled_matmul<<<grid, block>>>(a, b, c, M); });
    product("tiled_matmul");
    printf("tiled_matmul_512 %.3f\n", t);

    double sum = 0;
    for (float v : x)
        sum += v;
    auto total = [&](const char* name) {
        result();
        need(std::fabs(z[0] - sum) < sum * 1e-4, name);
    };
    t = best([&] {
        cudaMemset(c, 0, 4);
        block_reduction<<<N / 256, 256>>>(a, c);
    });
    total("block_reduction");
    printf("block_reduction_1M %.3f\n", t);
    t = best([&] {
        cudaMemset(c, 0, 4);
        shuffle_reduction<<<N / 256, 256>>>(a, c);
    });
    total("shuffle_reduction");
    printf("shuffle_reduction_1M %.3f\n", t);

    t = best([&] {
        cudaMemset(h, 0, 1024);
        histogram<<<64, 256>>>(u, h, N);
    });
    cudaMemcpy(counts.data(), h, 1024, cudaMemcpyDeviceToHost);
    need(counts == expected, "histogram");
    printf("histogram_1M %.3f\n", t);
    t = best([&] { transpose<<<dim3(32, 32), dim3(32, 8)>>>(a, c, W); });
    result();
    for (int i = 0; i < N; i++)
        need(z[i] == x[i % W * W + i / W], "transpose");
    printf("transpose_1024 %.3f\n", t);

    t = best([&] { barriers<<<1, 256>>>(10000); });
    printf("barrier_crossings_per_second %.3g\n", 256 * 10000 / (t / 1e3));
    t = best([&] {
        for (int i = 0; i < 1000; i++)
            nothing<<<1, 32>>>();
    });
    printf("launch_us %.3f\n", t);
    cudaFree(a), cudaFree(b), cudaFree(c), cudaFree(u), cudaFree(h);
}
