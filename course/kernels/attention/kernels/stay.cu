// nvcc -arch=sm_90a -cubin stay.cu
// The fastest rung: blocks that stay, and never stop. Beside the overlap of overlap.cu:
// - each block takes the tiles of queries that the host has planned for it, so that all blocks end
//   at about the same time
// - a tile's last step is the next tile's first: its scores are queued beside the last product
//   with V, and weighed meanwhile. So its queries are fetched early, into a second buffer
// - only tiles of keys that some query does not see whole are masked
// Grid: as many blocks as plan has entries, less one; block: 384 threads, dynamic shared memory:
// Shared. plan[b], plan[b + 1]: first and last tile of block b; tiles: (batch, head, row, 0).
#define BUFFERS 2
#include "hopper_tiles.cuh"

#ifndef TURNS
#define TURNS 0  // 1: warp groups multiply in turns, as in turns.cu
#endif

__device__ Tile planned(const int4* tiles, int i) {
    int4 tile = tiles[i];
    return {tile.x, tile.y, tile.z};
}

// K of each tile of keys before V of the one before, across all tiles of queries.
__device__ void produce(Shared& s, const Maps& maps, const Problem& p, const int4* plan,
                        int count) {
    Slot slot;
    Tile before = {-1};  // whose values come next: of this batch and head, from this row on
    for (int i = 0; i < count; ++i) {
        Tile tile = planned(plan, i);
        int head = tile.head / p.group;
        for (int t = key_tiles(p, tile.row) - 1; t >= 0; --t) {
            ask_for(s, maps.k, slot, head, t * KEYS, tile.batch);
            if (before.batch >= 0)
                ask_for(s, maps.v, slot, before.head, before.row, before.batch);
            before = {tile.batch, head, t * KEYS};
        }
    }
    ask_for(s, maps.v, slot, before.head, before.row, before.batch);
}

__device__ void consume(Shared& s, const Maps& maps, const Problem& p, float* lse, const int4* plan,
                        int count, int warpgroup) {
    Slot slot;
    Rows rows;
    float out[DIM / 2] = {};
    float scores[KEYS / 2];
    unsigned weights[KEYS / 4];
    float factor[2];
    int own_row = warpgroup * ROWS + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;

    Slot values;  // where the next V is: behind the next K

    // Queues tile t's scores and the product of the weights before, and waits for the scores.
    auto begin = [&](const QueryTile& q) {
        barrier_wait(&s.full[values.i], values.parity);
        if (TURNS)
            wait_for_turn(warpgroup);
        queue_scores(scores, q, s.ring[slot.i]);
        queue_values(out, weights, s.ring[values.i]);
        if (TURNS)
            pass_turn(warpgroup);
        wait_for_products<1>(scores);
        give_back(s, slot);
    };
    // Weighs them meanwhile, and waits for the product.
    auto finish = [&] {
        rows.weigh(scores, p.scale, factor);
        settle(scores);
        values.next();
        barrier_wait(&s.full[values.i], values.parity);  // the next K, or the last V
        wait_for_products<0>(out);
        give_back(s, slot);
        values.next();
    };
    Tile tile = planned(plan, 0);
    int t = key_tiles(p, tile.row) - 1;
    barrier_wait(&s.q_full[0][warpgroup], 0);
    barrier_wait(&s.full[slot.i], slot.parity);
    queue_scores(scores, s.q[0][warpgroup], s.ring[slot.i]);
    wait_for_products<0>(scores);
    give_back(s, slot);
    hide(scores, p, tile.row + own_row, t * KEYS);
    rows.weigh(scores, p.scale, factor);
    pack(weights, scores);
    barrier_wait(&s.full[slot.i], slot.parity);
    values = slot;
    values.next();
    for (int i = 0; i < count; ++i) {
        int buffer = i % 2;
        int whole = seen(p, tile.row + warpgroup * ROWS) / KEYS;  // of these all see every key
        while (--t >= 0) {
            begin(s.q[buffer][warpgroup]);
            if (t >= whole)
                hide(scores, p, tile.row + own_row, t * KEYS);
            finish();
            Rows::shrink(out, factor);
            pack(weights, scores);
        }
        if (i + 1 == count)
            break;
        Tile next = planned(plan, i + 1);
        t = key_tiles(p, next.row) - 1;
        barrier_wait(&s.q_full[buffer ^ 1][warpgroup], (i + 1) / 2 % 2);
        begin(s.q[buffer ^ 1][warpgroup]);
        hide(scores, p, next.row + own_row, t * KEYS);
        Rows old = rows;
        rows = Rows();
        finish();
        pack(weights, scores);
        store(s, maps, p, lse, tile, out, old, warpgroup, buffer);
#pragma unroll
        for (int j = 0; j < DIM / 2; ++j)
            out[j] = 0;
        tile = next;
    }
    queue_values(out, weights, s.ring[slot.i]);
    wait_for_products<0>(out);
    give_back(s, slot);
    store(s, maps, p, lse, tile, out, rows, warpgroup, (count - 1) % 2);
}

__global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap out,
                                                    const __grid_constant__ TensorMap q,
                                                    const __grid_constant__ TensorMap k,
                                                    const __grid_constant__ TensorMap v, float* lse,
                                                    const int* plan, const int4* tiles, Problem p) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    Maps maps = {&q, &k, &v, &out};
    int first = plan[blockIdx.x];
    int count = plan[blockIdx.x + 1] - first;
    int warpgroup = own_warpgroup() - 1;  // -1: the producer
    if (threadIdx.x == 0)
        init_barriers(s);
    __syncthreads();
    if (warpgroup < 0) {
        keep_registers<24>();
        if (threadIdx.x == 0)
            produce(s, maps, p, tiles + first, count);
        for (int i = 0; i < count && threadIdx.x == 32; ++i)
            ask_for_queries(s, maps, planned(tiles, first + i), i);
    } else {
        take_registers<240>();
        if (TURNS && warpgroup == 1)
            pass_turn(1);  // the first turn is warp group 0's
        consume(s, maps, p, lse, tiles + first, count, warpgroup);
        if (TURNS && warpgroup == 0)
            wait_for_turn(0);  // the last one passed: nobody leaves with a barrier half full
        if (threadIdx.x % 128 == 0)
            stores_have_arrived();
    }
}
