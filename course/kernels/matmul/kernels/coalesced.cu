// C = A B: the same work with x and y exchanged. Neighbouring threads take neighbouring columns.
__global__ void matmul(float* c, const float* a, const float* b, int m, int n, int k) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) {
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < k; i++) {
        sum += a[(size_t)row * k + i] * b[(size_t)i * n + col];
    }
    c[(size_t)row * n + col] = sum;
}
