// flags: -std=c++17
// Several devices: which is current, whose memory it is, peer copies, and kernels on peers' memory.
#include <cstdio>
#include <vector>

__global__ void add_one(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += 1;
}
__global__ void add(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] += in[i];
}

int main() {
    const int n = 1000;
    int count = 0, wrong = 0, device = -1;
    cudaGetDeviceCount(&count);
    std::vector<float*> x(count);
    for (int d = 0; d < count; d++) {
        cudaSetDevice(d);
        cudaGetDevice(&device);
        wrong += device != d;
        std::vector<float> start(n, float(d));
        cudaMalloc(&x[d], n * sizeof(float));
        cudaMemcpy(x[d], start.data(), n * sizeof(float), cudaMemcpyHostToDevice);
        add_one<<<4, 256>>>(x[d], n);
        cudaPointerAttributes facts;
        cudaPointerGetAttributes(&facts, x[d]);
        wrong += facts.device != d;
    }
    printf("no such device: %d\n", cudaSetDevice(count) == cudaErrorInvalidDevice);
    cudaGetLastError();

    // Round the ring by copies: device d gets what device d - 1 has.
    std::vector<float*> next(count);
    for (int d = 0; d < count; d++) {
        int from = (d + count - 1) % count;
        cudaSetDevice(d);
        cudaMalloc(&next[d], n * sizeof(float));
        cudaSetDevice(from);
        cudaDeviceSynchronize();
        if (cudaMemcpyPeer(next[d], d, x[from], from, n * sizeof(float)) != cudaSuccess)
            wrong++;
        float last;
        cudaMemcpy(&last, next[d] + n - 1, sizeof last, cudaMemcpyDefault);
        wrong += last != from + 1;
    }
    // Device 0 adds everyone's numbers with a kernel, where it may.
    cudaSetDevice(0);
    float expected = 1;
    for (int d = 1; d < count; d++) {
        int can = 0;
        cudaDeviceCanAccessPeer(&can, 0, d);
        if (!can)
            continue;
        wrong += cudaDeviceEnablePeerAccess(d, 0) != cudaSuccess;
        wrong += cudaDeviceEnablePeerAccess(d, 0) != cudaErrorPeerAccessAlreadyEnabled;
        cudaGetLastError();
        add<<<4, 256>>>(x[0], x[d], n);
        expected += d + 1;
        wrong += cudaDeviceSynchronize() != cudaSuccess;
        wrong += cudaDeviceDisablePeerAccess(d) != cudaSuccess;
    }
    float sum;
    cudaMemcpy(&sum, x[0] + n / 2, sizeof sum, cudaMemcpyDefault);
    wrong += sum != expected;
    for (int d = 0; d < count; d++) {
        cudaFree(x[d]);
        cudaFree(next[d]);
    }
    printf("wrong: %d\n", wrong);
}
