// flags: -lcurand
// cuRAND's host interface: fill device memory, repeat after the same seed, moments.
#include <cmath>
#include <cstdio>
#include <curand.h>
#include <vector>

int main() {
    const int n = 20000;
    float* device;
    std::vector<float> a(n), b(n), normal(n);
    curandGenerator_t generator;
    cudaMalloc(&device, n * sizeof(float));
    printf("%d\n", (int)curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
    printf("%d\n", (int)curandSetPseudoRandomGeneratorSeed(generator, 42ULL));
    printf("%d\n", (int)curandGenerateUniform(generator, device, n));
    cudaMemcpy(a.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
    printf("%d\n", (int)curandGenerateNormal(generator, device, n, 3.0f, 2.0f));
    cudaMemcpy(normal.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
    printf("%d\n", (int)curandDestroyGenerator(generator));
    curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
    curandSetPseudoRandomGeneratorSeed(generator, 42ULL);
    curandGenerateUniform(generator, device, n);
    cudaMemcpy(b.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
    curandDestroyGenerator(generator);
    double mean = 0, square = 0, m = 0, s = 0;
    bool same = a == b, inside = true;
    for (int i = 0; i < n; i++) {
        mean += a[i], square += a[i] * a[i], m += normal[i], s += normal[i] * normal[i];
        inside = inside && a[i] > 0 && a[i] <= 1;
    }
    mean /= n, square /= n, m /= n, s = sqrt(s / n - m * m);
    printf("%d %d %d %d\n", same, inside, fabs(mean - 0.5) < 0.02 && fabs(square - 1.0 / 3) < 0.02,
           fabs(m - 3) < 0.1 && fabs(s - 2) < 0.1);
    cudaFree(device);
}
