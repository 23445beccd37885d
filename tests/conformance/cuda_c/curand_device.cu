// cuRAND on the device: the same seed gives the same numbers, sequences differ, moments are right.
#include <cstdio>
#include <cmath>
#include <curand_kernel.h>

template <typename State>
__global__ void moments(double* sums, int per_thread) {
    State state;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curand_init(1234ULL, i, 0, &state);
    double u = 0, uu = 0, n = 0, nn = 0;
    for (int k = 0; k < per_thread; k++) {
        double x = curand_uniform(&state), y = curand_normal(&state);
        u += x, uu += x * x, n += y, nn += y * y;
    }
    atomicAdd(&sums[0], u), atomicAdd(&sums[1], uu), atomicAdd(&sums[2], n),
        atomicAdd(&sums[3], nn);
}

template <typename State>
__global__ void repeat(unsigned* out) {
    State a, b, c, d;
    curand_init(7, 3, 0, &a);
    curand_init(7, 3, 0, &b);
    curand_init(7, 4, 0, &c);
    curand_init(7, 3, 5, &d);
    unsigned same = 1, different = 0;
    for (int k = 0; k < 5; k++) {
        unsigned x = curand(&a);
        same &= x == curand(&b);
        different += x != curand(&c);
    }
    skipahead(5, &b);
    out[0] = same, out[1] = different == 5, out[2] = curand(&a) == curand(&d);
    curand(&a), curand(&a), curand(&a), curand(&a);
    out[3] = curand(&a) == curand(&b);
}

template <typename State>
void run(const char* name) {
    const int threads = 64, each = 1000;
    double *sums, n = 4.0 * threads * each;
    unsigned* out;
    cudaMallocManaged(&sums, 4 * sizeof(double));
    cudaMallocManaged(&out, 4 * sizeof(unsigned));
    for (int i = 0; i < 4; i++)
        sums[i] = 0;
    moments<State><<<4, threads>>>(sums, each);
    repeat<State><<<1, 1>>>(out);
    cudaDeviceSynchronize();
    bool right = fabs(sums[0] / n - 0.5) < 0.005 && fabs(sums[1] / n - 1.0 / 3) < 0.005 &&
                 fabs(sums[2] / n) < 0.01 && fabs(sums[3] / n - 1) < 0.02;
    printf("%s: moments %s, %u %u %u %u\n", name, right ? "right" : "wrong", out[0], out[1], out[2],
           out[3]);
    cudaFree(sums);
    cudaFree(out);
}

int main() {
    run<curandState>("XORWOW");
    run<curandStatePhilox4_32_10_t>("Philox");
}
