// Layer norm and RMS norm, forward and backward, for any number of rows and columns: a block a row.
// The row is read several times; after the first it is in a cache, unless it is very long.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "block_reduce.cuh"

template <typename T>
__device__ inline T* row_of(T* matrix, int columns) {
    return matrix + blockIdx.x * static_cast<long long>(columns);
}

// ---- forward

// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
template <typename T>
__global__ void layer_norm(T* y, float* means, float* inverses, const T* x, const T* gamma,
                           const T* beta, int columns, float epsilon) {
    const T* row = row_of(x, columns);
    T* y_row = row_of(y, columns);

    float sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += float(row[c]);
    float mean = block_reduce<Add>(sum) / columns;

    float squares = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float deviation = float(row[c]) - mean;
        squares += deviation * deviation;
    }
    float variance = block_reduce<Add>(squares) / columns;
    float inverse = rsqrtf(variance + epsilon);

    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        y_row[c] = T((float(row[c]) - mean) * inverse * float(gamma[c]) + float(beta[c]));
    if (threadIdx.x == 0) {
        means[blockIdx.x] = mean;
        inverses[blockIdx.x] = inverse;
    }
}

// y = x / sqrt(mean of x^2 + epsilon) * gamma
template <typename T>
__global__ void rms_norm(T* y, float* inverses, const T* x, const T* gamma, int columns,
                         float epsilon) {
    const T* row = row_of(x, columns);
    T* y_row = row_of(y, columns);

    float squares = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        squares += float(row[c]) * float(row[c]);
    float inverse = rsqrtf(block_reduce<Add>(squares) / columns + epsilon);

    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        y_row[c] = T(float(row[c]) * inverse * float(gamma[c]));
    if (threadIdx.x == 0)
        inverses[blockIdx.x] = inverse;
}

// ---- backward: the rows' gradient

// With xhat = (x - mean) * inverse and g = dy * gamma:
// dx = inverse * (g - mean(g) - xhat * mean(g * xhat))
template <typename T>
__global__ void layer_norm_backward(T* dx, const T* dy, const T* x, const T* gamma,
                                    const float* means, const float* inverses, int columns) {
    const T* x_row = row_of(x, columns);
    const T* dy_row = row_of(dy, columns);
    T* dx_row = row_of(dx, columns);
    float mean = means[blockIdx.x];
    float inverse = inverses[blockIdx.x];

    float sum_g = 0;
    float sum_g_xhat = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float xhat = (float(x_row[c]) - mean) * inverse;
        float g = float(dy_row[c]) * float(gamma[c]);
        sum_g += g;
        sum_g_xhat += g * xhat;
    }
    float mean_g = block_reduce<Add>(sum_g) / columns;
    float mean_g_xhat = block_reduce<Add>(sum_g_xhat) / columns;

    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float xhat = (float(x_row[c]) - mean) * inverse;
        float g = float(dy_row[c]) * float(gamma[c]);
        dx_row[c] = T(inverse * (g - mean_g - xhat * mean_g_xhat));
    }
}

// With xhat = x * inverse and g = dy * gamma: dx = inverse * (g - xhat * mean(g * xhat))
template <typename T>
__global__ void rms_norm_backward(T* dx, const T* dy, const T* x, const T* gamma,
                                  const float* inverses, int columns) {
    const T* x_row = row_of(x, columns);
    const T* dy_row = row_of(dy, columns);
    T* dx_row = row_of(dx, columns);
    float inverse = inverses[blockIdx.x];

    float sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += float(dy_row[c]) * float(gamma[c]) * float(x_row[c]) * inverse;
    float mean_g_xhat = block_reduce<Add>(sum) / columns;

    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float xhat = float(x_row[c]) * inverse;
        float g = float(dy_row[c]) * float(gamma[c]);
        dx_row[c] = T(inverse * (g - xhat * mean_g_xhat));
    }
}

// ---- backward: the parameters' gradients

// dgamma sums dy * xhat over the rows, dbeta sums dy: a thread has a column and some of the rows,
// and writes partial sums [gridDim.y, columns]. Without means (RMS norm) they count as 0.
template <typename T>
__global__ void parameter_gradients(float* dgamma_partial, float* dbeta_partial, const T* dy,
                                    const T* x, const float* means, const float* inverses, int rows,
                                    int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    float dgamma = 0;
    float dbeta = 0;
    for (int r = blockIdx.y; r < rows; r += gridDim.y) {
        long long i = r * static_cast<long long>(columns) + c;
        float mean = means ? means[r] : 0;
        float gradient = float(dy[i]);
        dgamma += gradient * (float(x[i]) - mean) * inverses[r];
        dbeta += gradient;
    }
    long long i = blockIdx.y * static_cast<long long>(columns) + c;
    dgamma_partial[i] = dgamma;
    if (dbeta_partial)
        dbeta_partial[i] = dbeta;
}

// out[m][c] = sum of partial[m][r][c] over the rows r: a block of 32 x 32 threads has 32 columns of
// the matrix m = blockIdx.y.
template <typename T>
__global__ void add_rows(T* out, const float* partial, int rows, int columns) {
    __shared__ float sums[32][33];
    const float* matrix = partial + blockIdx.y * static_cast<long long>(rows) * columns;
    int c = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (c < columns)
        for (int r = threadIdx.y; r < rows; r += 32)
            sum += matrix[r * static_cast<long long>(columns) + c];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = warp_reduce<Add>(sums[threadIdx.x][threadIdx.y]);  // a warp a column
    int column = blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x == 0 && column < columns)
        out[blockIdx.y * columns + column] = T(sum);
}
