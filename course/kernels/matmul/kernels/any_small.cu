// C = A B where there are few tiles of C: a cluster of SPLIT blocks has a tile, each block its part
// of k. Then every block adds up a part of the rows, from the shared memory of all blocks, in
// their order. What a block does is done once: copies, products, sums, the end.
// BM x BN: a tile. CONSUMERS: warp groups that share its rows.
// Grid: SPLIT * tiles, block: 128 * (1 + CONSUMERS), dynamic shared memory: sizeof(Shared).
#include "any_type.cuh"

#ifndef BM
#define BM 64
#define BN 64
#define CONSUMERS 1
#define STAGES 8
#define SPLIT 4
#define PER_SM 1
#endif

constexpr int ROWS = BM / CONSUMERS;  // of a consumer
constexpr int HALVES = ROWS / 64;
constexpr int SUMS = BN / 2;  // of a thread in 64 rows
constexpr int THREADS = 128 * (1 + CONSUMERS);
constexpr int PITCH = BN + 8;  // floats a row of sums: rows begin in other banks
constexpr int OWN_ROWS = BM / SPLIT;  // that a block adds up

using Stage = StageOf<BM, BN>;
struct Shared {
    Stage stage[STAGES];
    float sums[BM][PITCH];
    barrier full[STAGES], empty[STAGES];
};

__device__ inline int rank() {
    return SPLIT == 1 ? 0 : cluster_rank();
}

// Steps of this block: those of its part of k, of `steps`.
__device__ inline int first_step(int steps, int part) {
    return steps * part / SPLIT;
}

__device__ void produce(Shared& s, const TensorMap* a, const TensorMap* b, Place at, int first,
                        int last) {
    for (int step = first; step < last; ++step) {
        int i = step - first;
        int slot = i % STAGES;
        if (i >= STAGES)
            barrier_wait(&s.empty[slot], i / STAGES % 2 ^ 1);
        load<1>(s.stage[slot], a, b, &s.full[slot], at, step * BK);
    }
}

__device__ void add_steps(float (&d)[HALVES][SUMS], Shared& s, int consumer, int steps) {
    for (int i = 0; i < steps; ++i) {
        barrier_wait(&s.full[i % STAGES], i / STAGES % 2);
        multiply(d, s.stage[i % STAGES], consumer * ROWS, i > 0);
        wgmma_wait<1>();
        if (i > 0 && threadIdx.x % 128 == 0)
            barrier_arrive(&s.empty[(i - 1) % STAGES]);
    }
    wgmma_wait<0>();
}

// Where all blocks of the cluster can read them.
__device__ void show_sums(Shared& s, const float (&d)[HALVES][SUMS], int consumer) {
    int row = consumer * ROWS + own_row();
    int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < HALVES * SUMS; i += 2) {
        int y = row + i / SUMS * 64 + i / 2 % 2 * 8;
        int x = column + i % SUMS / 4 * 8;
        *(float2*)&s.sums[y][x] = float2{d[i / SUMS][i % SUMS], d[i / SUMS][i % SUMS + 1]};
    }
}

// Four numbers that lie in block `rank` where `own` lies here.
__device__ float4 from_block(const float* own, int rank) {
    float4 v;
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %4, %5; "
        "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there]; }"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "r"(shared_address(own)), "r"(rank)
        : "memory");
    return v;
}

__device__ void add_four(float* total, float4 v) {
    total[0] += v.x;
    total[1] += v.y;
    total[2] += v.z;
    total[3] += v.w;
}

// Writes COUNT neighbours of a row of C.
constexpr int COUNT = 16 / sizeof(result);
struct alignas(16) Piece {
    result of[COUNT];
};

// Adds up and stores this block's rows of the tile.
__device__ void store_rows(const Shared& s, result* c, Scales scales, Place at, int m, int n) {
    constexpr int ACROSS = BN / COUNT;
    bool aligned = n % COUNT == 0;
    c += (size_t)at.matrix * m * n;
    for (int i = threadIdx.x; i < OWN_ROWS * ACROSS; i += THREADS) {
        int y = rank() * OWN_ROWS + i / ACROSS;
        int x = i % ACROSS * COUNT;
        int row = at.row + y;
        int column = at.column + x;
        if (row >= m || column >= n)
            continue;
        float total[COUNT] = {};
#pragma unroll
        for (int part = 0; part < SPLIT; ++part)
#pragma unroll
            for (int j = 0; j < COUNT; j += 4) {
                const float* own = &s.sums[y][x + j];
                add_four(total + j, SPLIT == 1 ? *(const float4*)own : from_block(own, part));
            }
        float of_row = factor(scales.a, row, m, at.matrix);
        Piece piece;
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
            piece.of[j] = rounded(total[j] * of_row * factor(scales.b, column + j, n, at.matrix));
        result* to = c + (size_t)row * n + column;
        if (aligned)
            *(Piece*)to = piece;
        else
            for (int j = 0; j < min(COUNT, n - column); ++j)
                to[j] = piece.of[j];
    }
}

__device__ void meet_all() {
    if (SPLIT == 1)
        __syncthreads();
    else
        asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}

#if SPLIT == 1
#define LAUNCHED_AS __launch_bounds__(THREADS, PER_SM)
#else
#define LAUNCHED_AS __cluster_dims__(SPLIT) __launch_bounds__(THREADS, PER_SM)
#endif
__global__ LAUNCHED_AS void matmul(result* c, const __grid_constant__ TensorMap map_a,
                                   const __grid_constant__ TensorMap map_b, const float* scales_a,
                                   const float* scales_b, int m, int n, int k) {
    extern __shared__ __align__(1024) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    if (threadIdx.x == 0) {
        fetch_map(&map_a);
        fetch_map(&map_b);
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&s.full[i], 1);  // this block's producer
            barrier_init(&s.empty[i], CONSUMERS);
        }
        barriers_ready();
    }
    __syncthreads();
    int down = (m + BM - 1) / BM;
    int across = (n + BN - 1) / BN;
    int tile = blockIdx.x / SPLIT;
    Place at = {tile % down * BM, tile / down % across * BN, tile / (down * across)};
    int steps = (k + BK - 1) / BK;
    int first = first_step(steps, rank());
    int last = first_step(steps, rank() + 1);
    int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);  // the same for a whole warp
    if (warpgroup == 0) {
        if (threadIdx.x == 0)
            produce(s, &map_a, &map_b, at, first, last);
    } else {
        float d[HALVES][SUMS];
        if (first < last)
            add_steps(d, s, warpgroup - 1, last - first);
        else
            for (int i = 0; i < HALVES * SUMS; ++i)
                d[i / SUMS][i % SUMS] = 0;
        show_sums(s, d, warpgroup - 1);
    }
    meet_all();
    store_rows(s, c, {scales_a, scales_b}, at, m, n);
    if (SPLIT > 1)
        meet_all();  // nobody ends while others read its sums
}
