// What running sums are good for. Between `mark` and `gather` stands an inclusive sum of the marks:
// it says where each marked element goes, without one thread asking another.

// ---- stream compaction: keep the elements greater than a threshold -------------------------

__global__ void mark_greater(const float* in, long long n, float threshold, int* marks) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n)
        marks[i] = in[i] > threshold;
}

// places: the inclusive sum of the marks.
__global__ void gather_marked(const float* in, long long n, const int* marks, const int* places,
                              float* out) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n && marks[i])
        out[places[i] - 1] = in[i];
}

// ---- run lengths: 7 7 7 5 5 9 becomes 3 times 7, 2 times 5, 1 time 9 -----------------------

__global__ void mark_beginnings(const int* in, long long n, int* marks) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n)
        marks[i] = i == 0 || in[i] != in[i - 1];
}

// places: the inclusive sum of the marks. begins has room for one more than there are runs.
__global__ void gather_beginnings(const int* in, long long n, const int* marks, const int* places,
                                  int* values, int* begins) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n && marks[i]) {
        values[places[i] - 1] = in[i];
        begins[places[i] - 1] = static_cast<int>(i);
    }
    if (i == n - 1)
        begins[places[i]] = static_cast<int>(n);
}

__global__ void lengths_of_runs(const int* begins, int runs, int* lengths) {
    const int run = blockIdx.x * blockDim.x + threadIdx.x;
    if (run < runs)
        lengths[run] = begins[run + 1] - begins[run];
}

// ---- row offsets of a sparse matrix (CSR) from its elements' rows --------------------------

// counts: zeros before; their inclusive sum, behind a 0, are the offsets.
__global__ void count_rows(const int* rows, long long n, int* counts) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&counts[rows[i]], 1);
}

// ---- a segmented sum: it begins anew wherever a flag stands --------------------------------

struct Piece {  // of the array: its running sum at its end, and whether a segment begins in it
    float sum;
    int begins;
};

__device__ inline Piece join(Piece left, Piece right) {
    return {right.begins ? right.sum : left.sum + right.sum, left.begins | right.begins};
}

constexpr int THREADS = 256;

// Each block scans its own elements; where[n]: the flags, out[n]: the sums. The last piece of each
// block goes to block_sums and block_begins, which are scanned likewise.
__global__ void segmented_scan(const float* in, const int* where, long long n, float* out,
                               float* block_sums, int* block_begins) {
    __shared__ Piece row[2][THREADS];
    const int t = threadIdx.x;
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + t;
    int now = 0;
    row[now][t] = {i < n ? in[i] : 0, i < n ? where[i] : 0};
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        const Piece mine = row[now][t];
        row[1 - now][t] = t >= step ? join(row[now][t - step], mine) : mine;
        now = 1 - now;
        __syncthreads();
    }
    if (i < n)
        out[i] = row[now][t].sum;
    if (t == THREADS - 1) {
        block_sums[blockIdx.x] = row[now][t].sum;
        block_begins[blockIdx.x] = row[now][t].begins;
    }
}

// starts: the scanned block_sums. Elements before their block's first flag get what lies before.
__global__ void add_to_open_segments(const int* where, long long n, float* out,
                                     const float* starts) {
    __shared__ int first_flag;
    const int t = threadIdx.x;
    const long long i = static_cast<long long>(blockIdx.x) * THREADS + t;
    if (t == 0)
        first_flag = THREADS;
    __syncthreads();
    if (i < n && where[i])
        atomicMin(&first_flag, t);
    __syncthreads();
    if (i < n && blockIdx.x > 0 && t < first_flag)
        out[i] += starts[blockIdx.x - 1];
}
