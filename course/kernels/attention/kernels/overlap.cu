// nvcc -arch=sm_90a -cubin overlap.cu
// Flash attention on Hopper whose products and exponentials overlap within a warp group, too: the
// next tile's scores are queued before this tile's weights are multiplied with V, and are weighed
// while that product is under way.
// Turns are no longer needed: a warp group that weighs has a product of its own under way.
// Otherwise as turns.cu. Grid, block and shared memory: as there.
#include "hopper_tiles.cuh"

#ifndef TURNS
#define TURNS 0  // 1: warp groups multiply in turns all the same
#endif

__device__ void attend(Shared& s, const Maps& maps, const Problem& p, float* lse, Tile tile,
                       int warpgroup) {
    Slot slot;
    Rows rows;
    float out[DIM / 2] = {};
    float scores[KEYS / 2];
    unsigned weights[KEYS / 4];
    float factor[2];
    int row = tile.row + warpgroup * ROWS;
    int own_row = row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    int t = key_tiles(p, tile.row) - 1;
    barrier_wait(&s.q_full[0][warpgroup], 0);
    barrier_wait(&s.full[slot.i], slot.parity);
    queue_scores(scores, s.q[0][warpgroup], s.ring[slot.i]);
    wait_for_products<0>(scores);
    give_back(s, slot);
    hide(scores, p, own_row, t * KEYS);
    rows.weigh(scores, p.scale, factor);
    pack(weights, scores);
    if (TURNS && warpgroup == 1)
        pass_turn(1);  // the first turn is warp group 0's
    Slot values = slot;
    values.next();
    barrier_wait(&s.full[slot.i], slot.parity);
    while (--t >= 0) {
        barrier_wait(&s.full[values.i], values.parity);
        if (TURNS)
            wait_for_turn(warpgroup);
        queue_scores(scores, s.q[0][warpgroup], s.ring[slot.i]);
        queue_values(out, weights, s.ring[values.i]);
        if (TURNS)
            pass_turn(warpgroup);
        wait_for_products<1>(scores);
        give_back(s, slot);
        if ((t + 1) * KEYS > seen(p, row))
            hide(scores, p, own_row, t * KEYS);
        rows.weigh(scores, p.scale, factor);
        settle(scores);
        values.next();
        barrier_wait(&s.full[values.i], values.parity);  // the next K, or the last V
        wait_for_products<0>(out);
        give_back(s, slot);
        values.next();
        Rows::shrink(out, factor);
        pack(weights, scores);
    }
    if (TURNS && warpgroup == 0)
        wait_for_turn(0);  // the last one passed: nobody leaves with a barrier half full
    queue_values(out, weights, s.ring[slot.i]);
    wait_for_products<0>(out);
    give_back(s, slot);
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
            ask_for_keys<1>(s, maps, p, tile, slot);
        if (threadIdx.x == 32)
            ask_for_queries(s, maps, tile, 0);
    } else {
        take_registers<240>();
        attend(s, maps, p, lse, tile, warpgroup);
        if (threadIdx.x % 128 == 0)
            stores_have_arrived();
    }
}
