// nvcc -arch=sm_90a -cubin backward_stay.cu
// The backward pass on Hopper by blocks that stay: each takes the tiles of keys that the host has
// planned for it, so that all blocks end at about the same time. The next tile's K and V are fetched
// while the last steps of this one are under way, into a second buffer; gradients leave from the
// first one meanwhile.
// Otherwise as backward_wgmma.cu. Grid: as many blocks as plan has entries, less one; block: 384
// threads, dynamic shared memory: Shared. plan[b], plan[b + 1]: first and last tile of block b.
#define BUFFERS 2
#include "backward_tiles.cuh"

// What a block has to do.
struct Work {
    const int4* tiles;
    int count;

    __device__ Tile tile(int i) const {
        int4 tile = tiles[i];
        return {tile.x, tile.y, tile.z, tile.w};
    }
};

__device__ void produce(Shared& s, const Work& work, const Maps& maps, const Problem& p,
                        const Between& between) {
    Slot slot;
    for (int i = 0; i < work.count; ++i) {
        ask_for_keys(s, maps, work.tile(i), i);
        ask_for_queries(s, maps, p, between, work.tile(i), slot);
    }
}

__device__ void consume(Shared& s, const Work& work, const Problem& p, const Between& between,
                        int warpgroup) {
    Slot slot;
    for (int i = 0; i < work.count; ++i) {
        float dk[DIM / 2] = {}, dv[DIM / 2] = {};
        int buffer = i % BUFFERS;
        Tile keys = work.tile(i);
        settle(dk);
        settle(dv);
        barrier_wait(&s.keys_full[buffer], i / BUFFERS % 2);
        walk(s, s.k[buffer], s.v[buffer], p, between, keys, warpgroup, dk, dv, slot);
        settle(dv);
        meet_consumers();  // nobody multiplies with these keys any more
        stage(s.v[buffer], dv, 1, warpgroup);
        stage(s.k[buffer], dk, p.scale * LN_2, warpgroup);
        meet_warpgroup(warpgroup + 1);
        if (threadIdx.x % 128 == 0)
            barrier_arrive(&s.gradients_full[buffer]);
    }
}

// One thread sends all gradients, so that nobody who multiplies waits until they have left.
__device__ void send(Shared& s, const Work& work, const Maps& maps) {
    for (int i = 0; i < work.count; ++i) {
        int buffer = i % BUFFERS;
        barrier_wait(&s.gradients_full[buffer], i / BUFFERS % 2);
        for (int warpgroup = 0; warpgroup < CONSUMERS; ++warpgroup) {
            store(maps.dv, s.v[buffer], work.tile(i), warpgroup);
            store(maps.dk, s.k[buffer], work.tile(i), warpgroup);
        }
        stores_have_read();
        barrier_arrive(&s.keys_empty[buffer]);
    }
    stores_have_arrived();
}

__global__ __launch_bounds__(384, 1) void attention(
    const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
    const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap dout,
    const __grid_constant__ TensorMap dk, const __grid_constant__ TensorMap dv, float* rows,
    float* sums, Problem p, const int* plan, const int4* tiles) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    Maps maps = {&q, &k, &v, &dout, &dk, &dv};
    Between between = {rows, sums};
    int first = plan[blockIdx.x];
    Work work = {tiles + first, plan[blockIdx.x + 1] - first};
    int warpgroup = own_warpgroup() - 1;  // -1: the producer
    if (threadIdx.x == 0)
        init_barriers(s);
    __syncthreads();
    if (warpgroup < 0) {
        keep_registers<24>();
        if (threadIdx.x == 0)
            produce(s, work, maps, p, between);
        if (threadIdx.x == 32)
            send(s, work, maps);
    } else {
        take_registers<240>();
        consume(s, work, p, between, warpgroup);
    }
}
