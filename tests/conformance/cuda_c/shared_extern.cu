// Dynamic shared memory carved into several arrays of different types, beside a static one.
#include <cstdio>

extern __shared__ unsigned char raw[];

__global__ void carve(double* out, int n) {
    __shared__ int mark[2];
    double* d = reinterpret_cast<double*>(raw);
    int* i = (int*)(d + n);
    short* s = (short*)(i + n);
    int t = threadIdx.x;
    if (t < 2)
        mark[t] = 1000 * (t + 1);
    d[t] = t + 0.5;
    i[t] = 10 * t;
    s[t] = (short)(100 * t);
    __syncthreads();
    int u = n - 1 - t;
    out[t] = d[u] + i[u] + s[u] + mark[t % 2];
}

template <typename T>
__global__ void typed(T* out) {
    extern __shared__ char bytes[];
    T* values = (T*)bytes;
    values[threadIdx.x] = T(threadIdx.x) * 2;
    __syncthreads();
    out[threadIdx.x] = values[(threadIdx.x + 1) % blockDim.x];
}

int main() {
    const int n = 6;
    double* out;
    float* f;
    cudaMallocManaged(&out, n * sizeof(double));
    cudaMallocManaged(&f, n * sizeof(float));
    carve<<<1, n, n * (sizeof(double) + sizeof(int) + sizeof(short))>>>(out, n);
    cudaDeviceSynchronize();
    for (int k = 0; k < n; k++)
        printf("%.1f ", out[k]);
    printf("\n");
    typed<<<1, n, n * sizeof(float)>>>(f);
    typed<<<1, n, n * sizeof(double)>>>(out);
    cudaDeviceSynchronize();
    for (int k = 0; k < n; k++)
        printf("%.0f %.0f  ", f[k], out[k]);
    printf("\n");
    cudaFree(out);
    cudaFree(f);
}
