// While the block computes on one pair of tiles, the next ones are on their way: STAGES pairs of
// tiles in shared memory take turns.
#include "copy.cuh"
#include "four.cuh"
#include "products.cuh"
constexpr int PAD = 4, STAGES = 3;
constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = (BM / TM) * (BN / TN);
static_assert(THREADS % BK == 0 && THREADS % (BN / 4) == 0, "a thread's copies share a column");
__shared__ __align__(16) float tile_a[STAGES][BK][BM + PAD], tile_b[STAGES][BK][BN];

// Starts the copies of a tile of A, element by element, since it is turned on the way.
__device__ void start_a(int stage, const float* a, int top, int k0, int m, int k) {
#pragma unroll
    for (int s = 0; s < BM * BK / THREADS; s++) {
        int i = threadIdx.x + s * THREADS;
        int y = top + i / BK, x = k0 + i % BK;
        bool inside = y < m && x < k;
        copy<1>(&tile_a[stage][i % BK][i / BK], a + (inside ? (size_t)y * k + x : 0), inside);
    }
}

// Starts the copies of a tile of B, WIDTH elements at a time.
template <int WIDTH>
__device__ void start_b(int stage, const float* b, int left, int k0, int n, int k) {
#pragma unroll
    for (int s = 0; s < BK * BN / THREADS / WIDTH; s++) {
        int i = (threadIdx.x + s * THREADS) * WIDTH;
        int y = k0 + i / BN, x = left + i % BN;
        bool inside = y < k && x < n;
        copy<WIDTH>(&tile_b[stage][i / BN][i % BN], b + (inside ? (size_t)y * n + x : 0), inside);
    }
}

template <int WIDTH>
__device__ void multiply(float* c, const float* a, const float* b, int m, int n, int k) {
    int t = threadIdx.x;
    int top = blockIdx.y * BM, left = blockIdx.x * BN;
    int row = t / (BN / TN) * 4, col = t % (BN / TN) * 4;
    alignas(16) float sum[TM][TN] = {}, from_a[TM], from_b[TN];
    for (int s = 0; s < STAGES - 1; s++) {  // the first pairs, before anything else
        start_a(s, a, top, s * BK, m, k);
        start_b<WIDTH>(s, b, left, s * BK, n, k);
        close_group();
    }
    for (int k0 = 0, stage = 0; k0 < k; k0 += BK, stage = (stage + 1) % STAGES) {
        wait_for_groups<STAGES - 2>();  // this thread's copies of the oldest pair have arrived,
        __syncthreads();  // everyone's have, and the pair before is no longer read
        int next = (stage + STAGES - 1) % STAGES, next_k0 = k0 + (STAGES - 1) * BK;
        start_a(next, a, top, next_k0, m, k);
        start_b<WIDTH>(next, b, left, next_k0, n, k);
        close_group();
#pragma unroll
        for (int i = 0; i < BK; i++) {
            read_fours(from_a, tile_a[stage][i][row], BM / 2);
            read_fours(from_b, tile_b[stage][i][col], BN / 2);
            add_products(sum, from_a, from_b);
        }
    }
#pragma unroll
    for (int e = 0; e < TM * TN; e++) {
        int y = top + row + e / TN / 4 * (BM / 2) + e / TN % 4;
        int x = left + col + e % TN / 4 * (BN / 2) + e % 4;
        if (y < m && x < n)
            c[(size_t)y * n + x] = sum[e / TN][e % TN];
    }
}

__global__ __launch_bounds__(THREADS, 2) void matmul(float* c, const float* a, const float* b,
                                                     int m, int n, int k) {
    if (n % 4 == 0 && (size_t)b % 16 == 0)
        multiply<4>(c, a, b, m, n, k);
    else
        multiply<1>(c, a, b, m, n, k);  // rows of B that start anywhere
}
