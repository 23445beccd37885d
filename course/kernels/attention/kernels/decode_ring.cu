// nvcc -arch=sm_80 -cubin decode_ring.cu
// Decoding for groups of heads, for large caches. As decode_group.cu, but keys and values come into
// shared memory, by a ring of tiles for each warp.
// Grid: (parts, heads of keys * blocks of 8 queries, batch), block: THREADS, dynamic shared memory:
// STAGES tiles for each warp.
#include "decode_tiles.cuh"

__global__ __launch_bounds__(THREADS) void attention(number* out, float* lse, const number* q,
                                                     const number* k, const number* v,
                                                     const int* lengths, const int* table,
                                                     float* results, float* states,
                                                     unsigned* arrived, Decode d, Strides of_k,
                                                     Strides of_v) {
    __shared__ Found<QUERIES> found;
    extern __shared__ __align__(128) unsigned char raw[];
    Tile* tiles = (Tile*)raw + threadIdx.x / 32 * STAGES;
    int part = blockIdx.x;
    int batch = blockIdx.z;
    int length = lengths[batch];
    int first = part * d.chunk;
    if (first >= length)
        return;  // this sequence is shorter than the longest
    int end = min(first + d.chunk, length);
    int parts = (length + d.chunk - 1) / d.chunk;
    int blocks = (d.group + QUERIES - 1) / QUERIES;  // that share a head of keys
    int key_head = blockIdx.y / blocks;
    int query = blockIdx.y % blocks * QUERIES;  // the block's first of the group
    int count = min(d.group - query, QUERIES);
    int row = batch * d.heads + key_head * d.group + query;
    Piece own[K_PIECES] = {};
    load_queries(own, q, row, count);
    Source source = source_of(k, v, table, d, of_k, of_v, batch, key_head);
    attend(found, tiles, source, own, d.scale, first, end);
    int counter = blockIdx.z * gridDim.y + blockIdx.y;
    finish(found, out, lse, {results, states, arrived}, d, row, count, part, parts, counter);
}
