// wgmma fed by a producer: one thread of warp group 0 keeps STAGES steps' tiles on their way, warp
// groups 1 and 2 multiply.
// Grid: (ceil(n / 256), ceil(m / 128)), block: 384 threads, dynamic shared memory: sizeof(Shared),
// 196,672 bytes with 4 stages.
#include "hopper_tiles.cuh"

#ifndef STAGES
#define STAGES 4
#endif

struct Shared {
    Stage stage[STAGES];
    barrier full[STAGES], empty[STAGES];
};

__device__ void produce(Shared& s, const CUtensorMap* a, const CUtensorMap* b, int row, int column,
                        int k) {
    for (int step = 0; step * BK < k; ++step) {
        int slot = step % STAGES;
        int lap = step / STAGES;
        barrier_wait(&s.empty[slot], (lap + 1) % 2);  // in lap 0 it lets pass at once
        load(s.stage[slot], a, b, &s.full[slot], row, column, step * BK);
    }
}

__device__ void consume(float (&d)[128], Shared& s, int warpgroup, int k) {
    for (int step = 0; step * BK < k; ++step) {
        int slot = step % STAGES;
        int lap = step / STAGES;
        barrier_wait(&s.full[slot], lap % 2);
        multiply(d, s.stage[slot], warpgroup, step > 0);
        wgmma_wait<1>();  // the step before is done: its tiles may be overwritten
        if (step > 0 && threadIdx.x % 128 == 0)
            barrier_arrive(&s.empty[(step - 1) % STAGES]);
    }
    wgmma_wait<0>();
}

__global__ __launch_bounds__(384, 1) void matmul(bf16* c, const __grid_constant__ CUtensorMap map_a,
                                                 const __grid_constant__ CUtensorMap map_b, int m,
                                                 int n, int k) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    int warpgroup = threadIdx.x / 128 - 1;  // -1: the producer
    int row = blockIdx.y * BM;
    int column = blockIdx.x * BN;
    if (threadIdx.x == 0) {
        for (int slot = 0; slot < STAGES; ++slot) {
            barrier_init(&s.full[slot], 1);  // the producer
            barrier_init(&s.empty[slot], 2);  // one thread of each consumer
        }
        barriers_ready();
    }
    __syncthreads();

    if (warpgroup < 0) {
        keep_40_registers();  // of the 168 that each of the 384 threads started with
        if (threadIdx.x == 0)
            produce(s, &map_a, &map_b, row, column, k);
    } else {
        take_232_registers();
        float d[128];
        consume(d, s, warpgroup, k);
        store(c, d, row + warpgroup * 64, column, m, n);
    }
}
