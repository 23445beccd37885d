// nvcc -arch=sm_80 -cubin decode_split.cu
// Decoding, split over the sequence (flash-decoding): a block has one query and a part of the keys,
// so that there are blocks for all SMs. The block that comes last joins what all have found.
// Each head of queries still reads the keys itself: with 4 of them to one head of keys L2 is asked
// for all bytes 4 times.
// Grid: (parts, heads, batch), block: THREADS.
#include "decode_walk.cuh"

__global__ __launch_bounds__(THREADS) void attention(number* out, float* lse, const number* q,
                                                     const number* k, const number* v,
                                                     const int* lengths, const int* table,
                                                     float* results, float* states,
                                                     unsigned* arrived, Decode d, Strides of_k,
                                                     Strides of_v) {
    __shared__ Found<1> found;
    int part = blockIdx.x;
    int head = blockIdx.y;
    int batch = blockIdx.z;
    int length = lengths[batch];
    int first = part * d.chunk;
    if (first >= length)
        return;  // this sequence is shorter than the longest
    int end = min(first + d.chunk, length);
    int parts = (length + d.chunk - 1) / d.chunk;
    int row = batch * d.heads + head;
    walk(found, q, k, v, table, d, of_k, of_v, batch, head, first, end);
    finish(found, out, lse, {results, states, arrived}, d, row, 1, part, parts, row);
}
