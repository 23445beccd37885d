// nvcc -arch=sm_90a -cubin stay.cu
// The fastest rung: blocks that stay, and never stop. Beside the overlap of overlap.cu:
// - each block takes the tiles of queries that the host has planned for it, so that all blocks end
//   at about the same time
// - a tile's last step is the next tile's first: its scores are queued beside the last product
//   with V, and weighed meanwhile. So its queries are fetched early, into a second buffer
// Grid: as many blocks as plan has entries, less one; block: 384 threads, dynamic shared memory:
// Shared. plan[b], plan[b + 1]: first and last tile of block b; tiles: (batch, head, row, sequence).
#define BUFFERS 2
#include "hopper_tiles.cuh"

#ifndef TURNS
#define TURNS 0  // 1: warp groups multiply in turns all the same
#endif

// What a block has to do. Of packed sequences each has a problem and four maps of its own, which end
// where it ends; else there is one for all.
struct Work {
    const int4* tiles;
    int count;
    Maps maps;
    Problem problem;
    const TensorMap* packed_maps;  // of each sequence: q, k, v, out; or null
    const Problem* packed_problems;

    __device__ Tile tile(int i) const {
        int4 tile = tiles[i];
        return {tile.x, tile.y, tile.z, tile.w};
    }
    __device__ Maps maps_of(Tile tile) const {
        const TensorMap* own = packed_maps + tile.sequence * 4;
        return packed_maps ? Maps{own, own + 1, own + 2, own + 3} : maps;
    }
    __device__ Problem problem_of(Tile tile) const {
        return packed_problems ? packed_problems[tile.sequence] : problem;
    }
};

// K of each tile of keys before V of the one before, across all tiles of queries.
__device__ void produce(Shared& s, const Work& work) {
    Slot slot;
    auto ask_for_values = [&](Tile tile, int t) {
        int head = tile.head / work.problem_of(tile).group;
        ask_for(s, work.maps_of(tile).v, slot, head, t * KEYS, tile.batch);
    };
    for (int i = 0; i < work.count; ++i) {
        Tile tile = work.tile(i);
        int group = work.problem_of(tile).group;
        int last = key_tiles(work.problem_of(tile), tile.row) - 1;
        for (int t = last; t >= 0; --t) {
            ask_for(s, work.maps_of(tile).k, slot, tile.head / group, t * KEYS, tile.batch);
            if (t < last)
                ask_for_values(tile, t + 1);
            else if (i > 0)
                ask_for_values(work.tile(i - 1), 0);
        }
    }
    ask_for_values(work.tile(work.count - 1), 0);
}

__device__ void consume(Shared& s, const Work& work, float* lse, int warpgroup) {
    Rows rows;
    float out[DIM / 2] = {};
    float scores[KEYS / 2];
    unsigned weights[KEYS / 4];
    float factor[2];
    Slot slot, values;  // where the next K is, and where the next V, behind it
    int own_row = warpgroup * ROWS + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;

    // Queues the next scores and the product of the weights before, and waits for the scores.
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
    auto finish = [&](float scale) {
        rows.weigh(scores, scale, factor);
        settle(scores);
        values.next();
        barrier_wait(&s.full[values.i], values.parity);  // the next K, or the last V
        wait_for_products<0>(out);
        give_back(s, slot);
        values.next();
    };
    Tile tile = work.tile(0);
    Problem p = work.problem_of(tile);
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
    for (int i = 0; i < work.count; ++i) {
        int buffer = i % 2;
        int whole = seen(p, tile.row + warpgroup * ROWS) / KEYS;  // of these all see every key
        while (--t >= 0) {
            begin(s.q[buffer][warpgroup]);
            if (t >= whole)
                hide(scores, p, tile.row + own_row, t * KEYS);
            finish(p.scale);
            Rows::shrink(out, factor);
            pack(weights, scores);
        }
        if (i + 1 == work.count)
            break;
        Tile before = tile;
        tile = work.tile(i + 1);
        p = work.problem_of(tile);
        t = key_tiles(p, tile.row) - 1;
        barrier_wait(&s.q_full[buffer ^ 1][warpgroup], (i + 1) / 2 % 2);
        begin(s.q[buffer ^ 1][warpgroup]);
        hide(scores, p, tile.row + own_row, t * KEYS);
        Rows old = rows;
        rows = Rows();
        finish(p.scale);
        pack(weights, scores);
        store(s, work.maps_of(before), work.problem_of(before), lse, before, out, old, warpgroup,
              buffer);
#pragma unroll
        for (int j = 0; j < DIM / 2; ++j)
            out[j] = 0;
    }
    queue_values(out, weights, s.ring[slot.i]);
    wait_for_products<0>(out);
    give_back(s, slot);
    store(s, work.maps_of(tile), p, lse, tile, out, rows, warpgroup, (work.count - 1) % 2);
}

__global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap out,
                                                    const __grid_constant__ TensorMap q,
                                                    const __grid_constant__ TensorMap k,
                                                    const __grid_constant__ TensorMap v, float* lse,
                                                    const int* plan, const int4* tiles, Problem p,
                                                    const TensorMap* packed_maps,
                                                    const Problem* packed_problems) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    int first = plan[blockIdx.x];
    int count = plan[blockIdx.x + 1] - first;
    Work work = {tiles + first, count, {&q, &k, &v, &out}, p, packed_maps, packed_problems};
    int warpgroup = own_warpgroup() - 1;  // -1: the producer
    if (threadIdx.x == 0)
        init_barriers(s);
    __syncthreads();
    if (warpgroup < 0) {
        keep_registers<40>();
        if (threadIdx.x == 0)
            produce(s, work);
        for (int i = 0; i < count && threadIdx.x == 32; ++i)
            ask_for_queries(s, work.maps_of(work.tile(i)), work.tile(i), i);
    } else {
        take_registers<232>();
        if (TURNS && warpgroup == 1)
            pass_turn(1);  // the first turn is warp group 0's
        consume(s, work, lse, warpgroup);
        if (TURNS && warpgroup == 0)
            wait_for_turn(0);  // the last one passed: nobody leaves with a barrier half full
        if (threadIdx.x % 128 == 0)
            stores_have_arrived();
    }
}
