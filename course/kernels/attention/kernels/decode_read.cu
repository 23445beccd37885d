// nvcc -arch=sm_80 -cubin decode_read.cu
// What no decoding can do without: reading the bytes once. Each block leaves their exclusive or.
// Grid: any, block: THREADS. count: of pieces of 16 bytes.
#ifndef PASSING
#define PASSING 0  // 1: lines leave L2 before others, which then need not be written back
#endif
const int THREADS = 256;
const int AT_ONCE = 4;  // pieces of a thread that are on their way together

__device__ uint4 fetch(const uint4* from) {
#if PASSING
    return __ldcs(from);
#else
    return *from;
#endif
}

__global__ __launch_bounds__(THREADS) void read(unsigned* sums, const unsigned* bytes,
                                                long long count) {
    __shared__ unsigned found[THREADS];
    const uint4* from = (const uint4*)bytes;
    long long step = (long long)gridDim.x * THREADS * AT_ONCE;
    unsigned sum = 0;
    for (long long i = blockIdx.x * THREADS * AT_ONCE + threadIdx.x; i < count; i += step) {
        uint4 piece[AT_ONCE] = {};
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j)
            if (i + j * THREADS < count)
                piece[j] = fetch(from + i + j * THREADS);
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j)
            sum ^= piece[j].x ^ piece[j].y ^ piece[j].z ^ piece[j].w;
    }
    found[threadIdx.x] = sum;
    for (int other = THREADS / 2; other > 0; other /= 2) {
        __syncthreads();
        if (threadIdx.x < other)
            found[threadIdx.x] ^= found[threadIdx.x + other];
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = found[0];
}
