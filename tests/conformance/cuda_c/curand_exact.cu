// cuRAND on the device: the very numbers of the generators, bit for bit.
#include <cstdio>
#include <curand_kernel.h>

template <typename State>
__global__ void numbers(unsigned* out, float* uniform, double* wide, unsigned long long seed,
                        int sequence, int offset) {
    State state;
    curand_init(seed, sequence, offset, &state);
    for (int k = 0; k < 6; k++)
        out[k] = curand(&state);
    uniform[0] = curand_uniform(&state);
    wide[0] = curand_uniform_double(&state);
}

__global__ void four(uint4* out) {
    curandStatePhilox4_32_10_t state;
    curand_init(99, 2, 1, &state);
    out[0] = curand4(&state);
    out[1] = curand4(&state);
}

int main() {
    unsigned* out;
    float* uniform;
    double* wide;
    uint4* vectors;
    cudaMallocManaged(&out, 6 * sizeof(unsigned));
    cudaMallocManaged(&uniform, sizeof(float));
    cudaMallocManaged(&wide, sizeof(double));
    cudaMallocManaged(&vectors, 2 * sizeof(uint4));
    unsigned long long seeds[] = {0, 1234, 0x123456789abcdefULL};
    for (int k = 0; k < 3; k++) {
        numbers<curandState><<<1, 1>>>(out, uniform, wide, seeds[k], k * 5, k * 1001);
        cudaDeviceSynchronize();
        for (int i = 0; i < 6; i++)
            printf("%08x ", out[i]);
        printf("%.9g %.17g\n", *uniform, *wide);
        numbers<curandStatePhilox4_32_10_t>
            <<<1, 1>>>(out, uniform, wide, seeds[k], k * 5, k * 1001);
        cudaDeviceSynchronize();
        for (int i = 0; i < 6; i++)
            printf("%08x ", out[i]);
        printf("%.9g %.17g\n", *uniform, *wide);
    }
    four<<<1, 1>>>(vectors);
    cudaDeviceSynchronize();
    for (int k = 0; k < 2; k++)
        printf("%08x %08x %08x %08x\n", vectors[k].x, vectors[k].y, vectors[k].z, vectors[k].w);
    cudaFree(out);
    cudaFree(uniform);
    cudaFree(wide);
    cudaFree(vectors);
}
