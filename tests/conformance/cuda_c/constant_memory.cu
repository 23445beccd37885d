// Constant memory: initialised in the source, written by the host, an array of structs, read
// through a pointer.
#include <cstdio>

struct Rule {
    int from;
    float weight;
};

__constant__ int primes[5] = {2, 3, 5, 7, 11};
__constant__ float factor;
__constant__ Rule rules[2];

__global__ void use(float* out) {
    int i = threadIdx.x;
    const int* p = primes;
    out[i] = p[i] * factor + rules[i % 2].weight * rules[i % 2].from;
}

int main() {
    float host[5], f = 10.0f, *device;
    Rule r[2] = {{1, 0.5f}, {3, 0.25f}};
    cudaMalloc(&device, sizeof(host));
    cudaMemcpyToSymbol(factor, &f, sizeof(f));
    cudaMemcpyToSymbol(rules, r, sizeof(r));
    use<<<1, 5>>>(device);
    cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
    for (float x : host)
        printf("%.2f ", x);
    printf("\n");
    int second = 0, replaced[2] = {13, 17};
    cudaMemcpyFromSymbol(&second, primes, sizeof(int), 1 * sizeof(int));
    cudaMemcpyToSymbol(primes, replaced, sizeof(replaced), 3 * sizeof(int));
    use<<<1, 5>>>(device);
    cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
    printf("%d\n", second);
    for (float x : host)
        printf("%.2f ", x);
    printf("\n");
    cudaFree(device);
}
