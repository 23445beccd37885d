// A kernel with five arguments that does next to nothing (host.py counts what calling it costs).
extern "C" __global__ void axpy(float* out, const float* x, const float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a * x[i] + y[i];
}
