// nvcc -arch=sm_90a -cubin backward_wgmma.cu
// The backward pass on Hopper, its five products by wgmma, its copies by TMA; backward_tiles.cuh
// says how. A block for each tile of keys; where it is causal, those with most queries come first.
// Grid: (ceil(keys / 128), heads of keys, batch), block: 384 threads, dynamic shared memory: Shared.
// With -DPACKED sequences of any lengths: as many blocks as tiles has entries, each of which says
// (0, head of keys, first key, sequence).
#include "backward_tiles.cuh"

// A sequence of those that are packed: maps that end where it ends, and its place in Between.
struct Packed {
    TensorMap q, k, v, dout, dk, dv;
    Problem problem;
    int first_tile;
};

__device__ void consume(Shared& s, const Maps& maps, const Problem& p, const Between& between,
                        Tile keys, int warpgroup) {
    float dk[DIM / 2] = {}, dv[DIM / 2] = {};
    Slot slot;
    int own_rows = keys.key + warpgroup * ROWS;
    int own_key = own_rows + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    int starts[2] = {first_to_see(p, own_key), first_to_see(p, own_key + 8)};
    int whole = first_to_see(p, own_rows + ROWS - 1);  // from this query on all keys are seen
    settle(dk);
    settle(dv);
    barrier_wait(&s.keys_full, 0);
    // dv could be queued before dp is waited for: more would overlap within a warp group. But the
    // other one fills these gaps; at its limit of power the GPU was slower so.
    for (Steps step(p, keys); !step.done(); step.next()) {
        float scores[QUERIES / 2], dp[QUERIES / 2], dq[DQ_QUERIES / 2];
        unsigned weights[QUERIES / 4], changes[QUERIES / 4];
        int i = slot.i;
        barrier_wait(&s.q_full[i], slot.parity);
        queue_scores(scores, s.k, warpgroup * ROWS, s.q[i]);
        barrier_wait(&s.dout_full[i], slot.parity);
        queue_scores(dp, s.v, warpgroup * ROWS, s.dout[i]);
        wait_for_products<1>(scores);
        int row = step.tile * QUERIES;
        if (row < whole) {
            int start[2] = {starts[0] - row, starts[1] - row};
            hide(scores, start);
        }
        weigh(scores, s.lse[i], p.scale);
        pack(weights, scores);
        wait_for_products<0>(dp);
        change(dp, scores, s.delta[i]);
        queue_gradient(dv, weights, s.dout[i]);
        pack(changes, dp);
        store_changes(s.changes[i], changes, warpgroup);
        meet_consumers();
        queue_dq(dq, s.k, s.changes[i], warpgroup);
        queue_gradient(dk, changes, s.q[i]);
        wait_for_products<1>(dq);
        if (threadIdx.x % 128 == 0)
            barrier_arrive(&s.dout_empty[i]);
        add_dq(dq, between.sums_of(step.place(p)), warpgroup);
        wait_for_products<0>(dk);
        if (threadIdx.x % 128 == 0)
            barrier_arrive(&s.q_empty[i]);
        slot.next();
    }
    settle(dv);
    meet_consumers();  // nobody multiplies with these keys any more: gradients take their place
    stage(s.v, dv, 1, warpgroup);
    stage(s.k, dk, p.scale * LN_2, warpgroup);
    meet_warpgroup(warpgroup + 1);
    if (threadIdx.x % 128 == 0) {
        store(maps.dv, s.v, keys, warpgroup);
        store(maps.dk, s.k, keys, warpgroup);
        stores_have_arrived();
    }
}

__global__ __launch_bounds__(384, 1) void attention(
    const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
    const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap dout,
    const __grid_constant__ TensorMap dk, const __grid_constant__ TensorMap dv, float* rows,
    float* sums, Problem problem, const Packed* sequences, const int4* tiles) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
#ifdef PACKED
    int4 work = tiles[blockIdx.x];
    Tile keys = {work.x, work.y, work.z};
    const Packed& own = sequences[work.w];
    const Problem& p = own.problem;
    Maps maps = {&own.q, &own.k, &own.v, &own.dout, &own.dk, &own.dv};
    Between between = {rows, sums};
    between = {between.rows_of(own.first_tile), between.sums_of(own.first_tile)};
#else
    Tile keys = {(int)blockIdx.z, (int)blockIdx.y, (int)blockIdx.x * KEYS};
    const Problem& p = problem;
    Maps maps = {&q, &k, &v, &dout, &dk, &dv};
    Between between = {rows, sums};
#endif
    int warpgroup = own_warpgroup() - 1;  // -1: the producer
    if (threadIdx.x == 0)
        init_barriers(s);
    __syncthreads();
    if (warpgroup < 0) {
        keep_registers<24>();
        if (threadIdx.x == 0) {
            ask_for_keys(s, maps, keys);
            ask_for_queries(s, maps, p, between, keys);
        }
    } else {
        take_registers<240>();
        consume(s, maps, p, between, keys, warpgroup);
    }
}
