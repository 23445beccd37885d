// nvcc -arch=sm_90a -cubin wgmma.cu
// Flash attention on Hopper, its products by wgmma, its copies by TMA: one warp group of a block
// asks for tiles of K and V, two have 64 queries each. Scores never leave registers: they become
// weights there, and wgmma takes weights from registers, too.
// One step after the other: a warp group multiplies, waits, weighs, multiplies, waits.
// Grid: (ceil(queries / 128), heads, batch), block: 384 threads, dynamic shared memory: Shared.
#include "hopper_tiles.cuh"

__device__ void attend(Shared& s, const Maps& maps, const Problem& p, float* lse, Tile tile,
                       int warpgroup) {
    Slot slot;
    Rows rows;
    float out[DIM / 2] = {};
    int row = tile.row + warpgroup * ROWS;
    int own_row = row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    barrier_wait(&s.q_full[0][warpgroup], 0);
    for (int t = key_tiles(p, tile.row) - 1; t >= 0; --t) {
        float scores[KEYS / 2];
        barrier_wait(&s.full[slot.i], slot.parity);
        queue_scores(scores, s.q[0][warpgroup], s.ring[slot.i]);
        wait_for_products<0>(scores);
        give_back(s, slot);

        if ((t + 1) * KEYS > seen(p, row))  // the warp group's first row does not see all
            hide(scores, p, own_row, t * KEYS);
        float factor[2];
        rows.weigh(scores, p.scale, factor);
        Rows::shrink(out, factor);
        unsigned weights[KEYS / 4];
        pack(weights, scores);

        barrier_wait(&s.full[slot.i], slot.parity);
        queue_values(out, weights, s.ring[slot.i]);
        wait_for_products<0>(out);
        give_back(s, slot);
    }
    store(s, maps, p, lse, tile, out, rows, warpgroup);
}

__global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap out,
                                                    const __grid_constant__ TensorMap q,
                                                    const __grid_constant__ TensorMap k,
                                                    const __grid_constant__ TensorMap v, float* lse,
                                                    Problem p) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    Maps maps = {&q, &k, &v, &out};
    Tile tile = {(int)blockIdx.z, (int)blockIdx.y, (int)blockIdx.x * QUERIES, 0};
    int warpgroup = own_warpgroup() - 1;  // -1: the producer
    if (threadIdx.x == 0)
        init_barriers(s);
    __syncthreads();
    if (warpgroup < 0) {
        keep_registers<24>();
        Slot slot;
        if (threadIdx.x == 0)
            ask_for_keys<0>(s, maps, p, tile, slot);
        if (threadIdx.x == 32)
            ask_for_queries(s, maps, tile, 0);
    } else {
        take_registers<240>();
        attend(s, maps, p, lse, tile, warpgroup);
        if (threadIdx.x % 128 == 0)
            stores_have_arrived();
    }
}
