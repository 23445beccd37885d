// C = A B with mma.sync m16n8k8: the factors are rounded to TF32 (10 bits after the point).
// A (m x k), B (k x n), C (m x n): float32, row-major, sums in float32. n and k are multiples of
// 4, for 16-byte copies. Grid: (ceil(n / BN), ceil(m / BM)), block: THREADS, dynamic shared
// memory: STAGES * STAGE numbers. A GPU with less of it takes -DBM=128 -DBK=16.
#include "mma.cuh"

using number = float;

#ifndef BM
#define BM 256  // the block's tile of C is BM x BN
#define BK 32  // a step along k
#endif
#ifndef STAGES
#define STAGES 3  // pairs of tiles in shared memory
#endif
#ifndef AHEAD
#define AHEAD 1  // 1: the next fragments are loaded while these are multiplied
#endif

constexpr int BN = 128;
constexpr int WM = 64, WN = 64;  // the warp's tile of C
constexpr int DOWN = WM / 16, ACROSS = WN / 8;  // products of 16 x 8 in it
constexpr int DEEP = 8;  // what a product takes of k
constexpr int PARTS = BK / DEEP;  // products a step
constexpr int EACH = 16 / sizeof(number);  // numbers in 16 bytes
constexpr int WARPS_ACROSS = BN / WN;
constexpr int THREADS = 32 * (BM / WM) * WARPS_ACROSS;
constexpr int PITCH_A = BK + 4;  // 8 rows' pieces of 16 bytes lie in different banks
constexpr int PITCH_B = BN + 8;  // 4 rows of 8 neighbours lie in 32 different banks
constexpr int STAGE = BM * PITCH_A + BK * PITCH_B;  // numbers
static_assert(PARTS % 2 == 0, "two sets of fragments take turns within a step");

struct Matrix {
    const number* data;
    int rows, columns;
};

// Starts copying the ROWS x COLUMNS tile at (row, column); what lies outside becomes zero.
template <int ROWS, int COLUMNS, int PITCH>
__device__ void copy_tile(number* tile, Matrix from, int row, int column) {
    constexpr int LANES = COLUMNS / EACH;  // threads that share a row
    constexpr int STEP = THREADS / LANES;  // rows at a time
    int y = threadIdx.x / LANES;
    int x = threadIdx.x % LANES * EACH;
    const number* source = from.data + (size_t)(row + y) * from.columns + column + x;
    for (int i = 0; i < ROWS; i += STEP) {
        bool inside = row + y + i < from.rows && column + x < from.columns;
        copy16(tile + (y + i) * PITCH + x, inside ? source : from.data, inside);
        source += (size_t)STEP * from.columns;
    }
}

__device__ unsigned tf32(float x) {
    unsigned rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
    return rounded;
}

// d (16 x 8) += a (16 x 8) b (8 x 8), the whole warp together.
__device__ void mma_8(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// What a warp multiplies at a time: WM x 8 numbers of A and 8 x WN of B.
struct Fragments {
    unsigned a[DOWN][4];
    unsigned b[ACROSS][2];
};

// tile_a and tile_b: the first number of A and of B that this warp needs. ldmatrix moves pieces of
// 16 bytes whatever they mean, so it serves A. It transposes only numbers of 2 bytes: those of B
// come one by one.
__device__ void load(Fragments& f, const number* tile_a, const number* tile_b) {
    int row = threadIdx.x % 16;
    int column = threadIdx.x % 32 / 16 * 4;
    for (int i = 0; i < DOWN; ++i) {
        load_matrices(f.a[i], tile_a + (i * 16 + row) * PITCH_A + column);
        for (int e = 0; e < 4; ++e)
            f.a[i][e] = tf32(__uint_as_float(f.a[i][e]));
    }
    const number* of_lane = tile_b + threadIdx.x % 4 * PITCH_B + threadIdx.x % 32 / 4;
    for (int j = 0; j < ACROSS; ++j)
        for (int e = 0; e < 2; ++e)
            f.b[j][e] = tf32(of_lane[e * 4 * PITCH_B + j * 8]);
}

__device__ void multiply(float (&d)[DOWN][ACROSS][4], const Fragments& f) {
    for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j)
            mma_8(d[i][j], f.a[i], f.b[j]);
}

// A lane holds two neighbours of row lane / 4, and two of the row 8 below, of each 16 x 8 product.
__device__ void store(number* c, const float (&d)[DOWN][ACROSS][4], int row, int column, int m,
                      int n) {
    row += threadIdx.x % 32 / 4;
    column += threadIdx.x % 4 * 2;
    for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j)
            for (int half = 0; half < 2; ++half) {
                int y = row + i * 16 + half * 8;
                int x = column + j * 8;
                const float* two = &d[i][j][half * 2];
                if (y < m && x < n)
                    *(float2*)(c + (size_t)y * n + x) = make_float2(two[0], two[1]);
            }
}

__global__ __launch_bounds__(THREADS, 1) void matmul(number* c, const number* a, const number* b,
                                                     int m, int n, int k) {
    extern __shared__ __align__(16) number shared[];
    int row = blockIdx.y * BM;
    int column = blockIdx.x * BN;
    int warp = threadIdx.x / 32;
    int warp_row = warp / WARPS_ACROSS * WM;
    int warp_column = warp % WARPS_ACROSS * WN;
    int steps = (k + BK - 1) / BK;

    auto start_copies = [&](int step) {
        number* tile_a = shared + step % STAGES * STAGE;
        number* tile_b = tile_a + BM * PITCH_A;
        if (step < steps) {
            copy_tile<BM, BK, PITCH_A>(tile_a, {a, m, k}, row, step * BK);
            copy_tile<BK, BN, PITCH_B>(tile_b, {b, k, n}, step * BK, column);
        }
        close_group();  // also where nothing is left to copy: the count in next_tiles relies on it
    };
    auto next_tiles = [] {
        wait_for_groups<STAGES - 2>();  // this thread's part of the next step's tiles is there,
        __syncthreads();  // everyone's is
    };
    auto load_part = [&](Fragments& f, int step, int part) {
        const number* tile_a = shared + step % STAGES * STAGE;
        const number* tile_b = tile_a + BM * PITCH_A;
        int k0 = part * DEEP;
        load(f, tile_a + warp_row * PITCH_A + k0, tile_b + k0 * PITCH_B + warp_column);
    };

    float d[DOWN][ACROSS][4] = {};
    Fragments f[2];  // one is multiplied while the other is loaded
    for (int step = 0; step < STAGES - 1; ++step)
        start_copies(step);
    next_tiles();
    if (AHEAD)
        load_part(f[0], 0, 0);
    for (int step = 0; step < steps; ++step) {
        start_copies(step + STAGES - 1);  // where the step before was, which all have finished
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            int next = part + AHEAD;
            if (next == PARTS)
                next_tiles();
            load_part(f[next % 2], step + next / PARTS, next % PARTS);
            multiply(d, f[part % 2]);
        }
        if (!AHEAD)
            next_tiles();
    }
    store(c, d, row + warp_row, column + warp_column, m, n);
}
