// Twenty kernels whose accesses the tracer counts and Nsight Compute counts: see validate_ncu.py.
// Strides and offsets are arguments, so that the compiler cannot merge or drop an access.

// ---- global memory

__global__ void copy(float* out, const float* a, int stride, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i * stride + offset];
}

__global__ void scatter(float* out, const float* a, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i * stride] = a[i];
}

__global__ void copy_wide(float4* out, const float4* a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i];
}

__global__ void copy_double(double* out, const double* a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i];
}

__global__ void copy_bytes(unsigned char* out, const unsigned char* a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i];
}

__global__ void add_guarded(float* out, const float* a, const float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a[i] + b[i];
    }
}

__global__ void gather(float* out, const float* a, const int* places) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[places[i]];
}

__global__ void every_other_lane(float* out, const float* a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 2 == 0) {
        out[i] = a[i];
    }
}

__global__ void stencil(float* out, const float* a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] + a[i + 1] + a[i + 2];
}

__global__ void structures(float* out, const float* p, int fields) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float total = 0;
    for (int k = 0; k < fields; k++) {
        total += p[i * fields + k];
    }
    out[i] = total;
}

__global__ void in_strides(float* out, const float* a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = a[i];
    }
}

// ---- shared memory

__global__ void transpose_naive(float* out, const float* a, int side) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * side + y] = a[y * side + x];
}

__global__ void transpose_tiled(float* out, const float* a, int side) {
    __shared__ float tile[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    tile[ty][tx] = a[(blockIdx.y * 32 + ty) * side + blockIdx.x * 32 + tx];
    __syncthreads();
    out[(blockIdx.x * 32 + ty) * side + blockIdx.y * 32 + tx] = tile[tx][ty];
}

__global__ void transpose_padded(float* out, const float* a, int side) {
    __shared__ float tile[32][33];
    int tx = threadIdx.x, ty = threadIdx.y;
    tile[ty][tx] = a[(blockIdx.y * 32 + ty) * side + blockIdx.x * 32 + tx];
    __syncthreads();
    out[(blockIdx.x * 32 + ty) * side + blockIdx.y * 32 + tx] = tile[tx][ty];
}

__global__ void banks(float* out, int stride) {
    __shared__ float numbers[1024];
    int t = threadIdx.x;
    numbers[t * stride] = t;
    __syncthreads();
    out[t] = numbers[(31 - t) * stride];
}

__global__ void banks_double(double* out, int stride) {
    __shared__ double numbers[1024];
    int t = threadIdx.x;
    numbers[t * stride] = t;
    __syncthreads();
    out[t] = numbers[(31 - t) * stride];
}

__global__ void banks_wide(float4* out, const float4* a) {
    __shared__ float4 numbers[64];
    int t = threadIdx.x;
    numbers[t] = a[t];
    __syncthreads();
    out[t] = numbers[63 - t];
}

__global__ void broadcast(float* out, const float* a, int place) {
    __shared__ float numbers[64];
    int t = threadIdx.x;
    numbers[t] = a[t];
    __syncthreads();
    out[t] = numbers[place];
}

__global__ void sum_tree(float* out, const float* a) {
    __shared__ float sums[128];
    int t = threadIdx.x;
    sums[t] = a[blockIdx.x * 128 + t];
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (t < step) {
            sums[t] += sums[t + step];
        }
        __syncthreads();
    }
    if (t == 0) {
        out[blockIdx.x] = sums[0];
    }
}

__global__ void product(float* c, const float* a, const float* b, int n) {
    __shared__ float left[16][16];
    __shared__ float right[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float total = 0;
    for (int k = 0; k < n; k += 16) {
        left[ty][tx] = a[row * n + k + tx];
        right[ty][tx] = b[(k + ty) * n + column];
        __syncthreads();
#pragma unroll 1  // else four loads of a row become one
        for (int j = 0; j < 16; j++) {
            total += left[ty][j] * right[j][tx];
        }
        __syncthreads();
    }
    c[row * n + column] = total;
}
