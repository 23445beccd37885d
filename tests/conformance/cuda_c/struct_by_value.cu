// Structures and small arrays passed by value are copied at the launch.
#include <cstdio>

struct Matrix {
    int rows, cols;
    float values[6];
    __host__ __device__ float at(int r, int c) const {
        return values[r * cols + c];
    }
};

struct Empty {};

__global__ void row_sums(Matrix m, float* out, Empty, char tag) {
    int r = threadIdx.x;
    if (r >= m.rows)
        return;
    float sum = 0;
    for (int c = 0; c < m.cols; c++)
        sum += m.at(r, c);
    m.values[0] = -1000;  // each thread has its own copy
    out[r] = sum + (tag == 'x' ? 100 : 0);
}

int main() {
    Matrix m{2, 3, {1, 2, 3, 4, 5, 6}};
    float* out;
    cudaMallocManaged(&out, 2 * sizeof(float));
    row_sums<<<1, 8>>>(m, out, Empty{}, 'x');
    m.values[5] = 1e6f;  // after the launch: not seen by it
    cudaDeviceSynchronize();
    printf("%.0f %.0f, host copy %.0f\n", out[0], out[1], m.at(0, 0));
    cudaFree(out);
}
