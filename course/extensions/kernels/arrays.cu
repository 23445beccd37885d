// The operators of a small autograd, a thread an element: nothing here is fast, all of it is right.

__global__ void add(float* out, const float* a, const float* b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] + b[i];
}

__global__ void multiply(float* out, const float* a, const float* b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] * b[i];
}

__global__ void relu(float* out, const float* a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] < 0 ? 0 : a[i];
}

// The gradient passes where relu's output is positive.
__global__ void relu_backward(float* da, const float* dout, const float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        da[i] = out[i] > 0 ? dout[i] : 0;
}

// out [rows, columns] = a [rows, depth] @ b [depth, columns]; a thread an element of out.
__global__ void matmul(float* out, const float* a, const float* b, int rows, int columns,
                       int depth) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns)
        return;
    const int row = i / columns, column = i % columns;
    float sum = 0;
    for (int k = 0; k < depth; ++k)
        sum += a[row * depth + k] * b[k * columns + column];
    out[i] = sum;
}
