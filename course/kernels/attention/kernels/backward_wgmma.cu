// nvcc -arch=sm_90a -cubin backward_wgmma.cu
// The backward pass on Hopper, its five products by wgmma, its copies by TMA; backward_tiles.cuh
// says how. A block for each tile of keys; where it is causal, those with most queries come first.
// Grid: (ceil(keys / 128), heads of keys, batch), block: 384 threads, dynamic shared memory: Shared.
#include "backward_tiles.cuh"

__device__ void consume(Shared& s, const Maps& maps, const Problem& p, const Between& between,
                        Tile keys, int warpgroup) {
    float dk[DIM / 2] = {}, dv[DIM / 2] = {};
    Slot slot;
    settle(dk);
    settle(dv);
    barrier_wait(&s.keys_full[0], 0);
    walk(s, s.k[0], s.v[0], p, between, keys, warpgroup, dk, dv, slot);
    settle(dv);
    meet_consumers();  // nobody multiplies with these keys any more
    stage(s.v[0], dv, 1, warpgroup);
    stage(s.k[0], dk, p.scale * LN_2, warpgroup);
    meet_warpgroup(warpgroup + 1);
    if (threadIdx.x % 128 == 0) {
        store(maps.dv, s.v[0], keys, warpgroup);
        store(maps.dk, s.k[0], keys, warpgroup);
        stores_have_arrived();
    }
}

__global__ __launch_bounds__(384, 1) void attention(const __grid_constant__ TensorMap q,
                                                    const __grid_constant__ TensorMap k,
                                                    const __grid_constant__ TensorMap v,
                                                    const __grid_constant__ TensorMap dout,
                                                    const __grid_constant__ TensorMap dk,
                                                    const __grid_constant__ TensorMap dv,
                                                    float* rows, float* sums, Problem p) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    Maps maps = {&q, &k, &v, &dout, &dk, &dv};
    Between between = {rows, sums};
    Tile keys = {(int)blockIdx.z, (int)blockIdx.y, (int)blockIdx.x * KEYS, 0};
    int warpgroup = own_warpgroup() - 1;  // -1: the producer
    if (threadIdx.x == 0)
        init_barriers(s);
    __syncthreads();
    if (warpgroup < 0) {
        keep_registers<24>();
        Slot slot;
        if (threadIdx.x == 0) {
            ask_for_keys(s, maps, keys, 0);
            ask_for_queries(s, maps, p, between, keys, slot);
        }
    } else {
        take_registers<240>();
        consume(s, maps, p, between, keys, warpgroup);
    }
}
