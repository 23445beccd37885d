// nvcc -arch=sm_90a -cubin turns.cu
// Flash attention on Hopper in turns: while one warp group multiplies, the other weighs its scores,
// so that the tensor cores need not wait for exponentials. A turn is V of this tile and K of the
// next, and ends when both are queued.
// Otherwise as wgmma.cu. Grid, block and shared memory: as there.
#include "hopper_tiles.cuh"

__device__ void attend(Shared& s, const Maps& maps, const Problem& p, float* lse, Tile tile,
                       int warpgroup) {
    Slot slot;
    Rows rows;
    float out[DIM / 2] = {};
    float scores[KEYS / 2];
    unsigned weights[KEYS / 4];
    int row = tile.row + warpgroup * ROWS;
    int own_row = row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    int tiles = key_tiles(p, tile.row);
    barrier_wait(&s.q_full[0][warpgroup], 0);
    barrier_wait(&s.full[slot.i], slot.parity);
    queue_scores(scores, s.q[0][warpgroup], s.ring[slot.i]);
    wait_for_products<0>(scores);
    give_back(s, slot);
    if (warpgroup == 1)
        pass_turn(1);  // the first turn is warp group 0's
    auto weigh = [&](int t) {
        if ((t + 1) * KEYS > seen(p, row))
            hide(scores, p, own_row, t * KEYS);
        float factor[2];
        rows.weigh(scores, p.scale, factor);
        Rows::shrink(out, factor);
        pack(weights, scores);
    };
    for (int t = tiles - 1; t > 0; --t) {
        weigh(t);
        Slot next = slot;
        next.next();
        barrier_wait(&s.full[slot.i], slot.parity);
        barrier_wait(&s.full[next.i], next.parity);
        wait_for_turn(warpgroup);
        queue_values(out, weights, s.ring[slot.i]);
        queue_scores(scores, s.q[0][warpgroup], s.ring[next.i]);
        pass_turn(warpgroup);
        wait_for_products<0>(out);
        wait_for_products<0>(scores);
        give_back(s, slot);
        give_back(s, slot);
    }
    weigh(0);
    barrier_wait(&s.full[slot.i], slot.parity);
    queue_values(out, weights, s.ring[slot.i]);
    wait_for_products<0>(out);
    give_back(s, slot);
    if (warpgroup == 0)
        wait_for_turn(0);  // the last one passed: nobody leaves with a barrier half full
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
