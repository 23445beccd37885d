// Inclusive sums of an array, one change at a time. Blocks have THREADS threads, one element each.
//
// 1 to 3 scan each block's piece and note its sum; the sums are scanned in the same way, and
// `add_starts` adds to each piece what lies before it. 4 needs one pass over memory less.
#include "warps.cuh"

constexpr int THREADS = 256;

// ---- 1: Hillis and Steele (1986): everybody adds, log2(THREADS) times ----------------------

__global__ void hillis_steele(const float* in, float* out, long long n, float* sums) {
    __shared__ float row[2][THREADS];
    const int t = threadIdx.x;
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + t;
    int now = 0;
    row[now][t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        const float left = t >= step ? row[now][t - step] : 0;
        row[1 - now][t] = row[now][t] + left;  // into the other row: nobody reads it
        now = 1 - now;
        __syncthreads();
    }
    if (i < n)
        out[i] = row[now][t];
    if (t == THREADS - 1)
        sums[blockIdx.x] = row[now][t];
}

// ---- 2: Blelloch (1990): a tree up and down again, 2 (THREADS - 1) additions ---------------

__global__ void blelloch(const float* in, float* out, long long n, float* sums) {
    __shared__ float tree[THREADS];
    const int t = threadIdx.x;
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + t;
    const float mine = i < n ? in[i] : 0;
    tree[t] = mine;
    for (int step = 1; step < THREADS; step *= 2) {  // up: sums of 2, 4, 8 ... neighbours
        __syncthreads();
        const int right = 2 * step * (t + 1) - 1;
        if (right < THREADS)
            tree[right] += tree[right - step];
    }
    __syncthreads();
    if (t == THREADS - 1) {
        sums[blockIdx.x] = tree[t];
        tree[t] = 0;
    }
    for (int step = THREADS / 2; step > 0; step /= 2) {  // down: what lies before each of them
        __syncthreads();
        const int right = 2 * step * (t + 1) - 1;
        if (right < THREADS) {
            const float before = tree[right], of_left = tree[right - step];
            tree[right - step] = before;
            tree[right] = before + of_left;
        }
    }
    __syncthreads();
    if (i < n)
        out[i] = tree[t] + mine;
}

// ---- 3: warps first ------------------------------------------------------------------------

// The sum of the values of threads 0 to threadIdx.x.
__device__ float block_scan(float value) {
    __shared__ float sums[THREADS / WARP];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    value = warp_scan(value, lane);
    if (lane == WARP - 1)
        sums[warp] = value;
    __syncthreads();
    for (int w = 0; w < warp; w++)
        value += sums[w];
    return value;
}

__global__ void scan_blocks(const float* in, float* out, long long n, float* sums) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    const float through = block_scan(i < n ? in[i] : 0);
    if (i < n)
        out[i] = through;
    if (threadIdx.x == THREADS - 1)
        sums[blockIdx.x] = through;
}

// sums: scanned. Each element gets the sum of the blocks before its own.
__global__ void add_starts(float* out, long long n, const float* sums) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n && blockIdx.x > 0)
        out[i] += sums[blockIdx.x - 1];
}

// ---- 4: reduce, then scan: the first pass writes only the sums -----------------------------

__global__ void sum_blocks(const float* in, long long n, float* sums) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    const float through = block_scan(i < n ? in[i] : 0);
    if (threadIdx.x == THREADS - 1)
        sums[blockIdx.x] = through;
}

// sums: scanned.
__global__ void scan_from_starts(const float* in, float* out, long long n, const float* sums) {
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
    const float start = blockIdx.x > 0 ? sums[blockIdx.x - 1] : 0;
    const float through = block_scan(i < n ? in[i] : 0);
    if (i < n)
        out[i] = start + through;
}
