// nvcc -arch=sm_80 -cubin decode_simple.cu
// Decoding, the simple way: a block has one query, and walks through all keys of its sequence. One
// sequence with 32 heads keeps 32 blocks busy, and a large GPU has more than 100 SMs.
// Grid: (1, heads, batch), block: THREADS.
#include "decode_walk.cuh"

__global__ __launch_bounds__(THREADS) void attention(number* out, float* lse, const number* q,
                                                     const number* k, const number* v,
                                                     const int* lengths, const int* table, Decode d,
                                                     Strides of_k, Strides of_v) {
    __shared__ Found<1> found;
    int head = blockIdx.y;
    int batch = blockIdx.z;
    walk(found, q, k, v, table, d, of_k, of_v, batch, head, 0, lengths[batch]);
    __syncthreads();
    join_warps(found, out, lse, Parts(), d, batch * d.heads + head, 1, 0, 1);
}
