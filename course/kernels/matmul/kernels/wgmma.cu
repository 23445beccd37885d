// wgmma, one step after the other: copy, wait, multiply, wait. Nothing overlaps.
// Grid: (ceil(n / 256), ceil(m / 128)), block: 256 threads, dynamic shared memory: 49,168 bytes.
#include "hopper_tiles.cuh"

struct Shared {
    Stage stage;
    barrier full, unused;
};

__global__ __launch_bounds__(256) void matmul(bf16* c, const __grid_constant__ CUtensorMap map_a,
                                              const __grid_constant__ CUtensorMap map_b, int m,
                                              int n, int k) {
    // A swizzle works on address bits, so tiles begin at multiples of 1024
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    int warpgroup = threadIdx.x / 128;
    int row = blockIdx.y * BM;
    int column = blockIdx.x * BN;
    if (threadIdx.x == 0) {
        barrier_init(&s.full, 1);
        barriers_ready();
    }
    __syncthreads();

    float d[128];
    for (int step = 0; step * BK < k; ++step) {
        if (threadIdx.x == 0)
            load(s.stage, &map_a, &map_b, &s.full, row, column, step * BK);
        barrier_wait(&s.full, step % 2);
        multiply(d, s.stage, warpgroup, step > 0);
        wgmma_wait<0>();
        __syncthreads();  // all have multiplied: the tiles may be overwritten
    }
    store(c, d, row + warpgroup * 64, column, m, n);
}
