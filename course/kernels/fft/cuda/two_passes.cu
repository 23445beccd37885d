// Transforms that need two passes over memory, because they do not fit a block's shared memory:
// long ones of N * M points, and pictures of N rows and M columns.
//
// A long transform is a matrix, too: point n = M * r + c stands in row r and column c. Its columns
// are transformed, each point is turned by r * c / (N * M) of a full turn, rows are transformed,
// and the matrix is transposed (Gentleman and Sande, 1966; Bailey, 1990: "four steps").
//
// `..._in_two` kernels are launched one after the other. `fft_long` and `fft_pictures` do both
// passes in one launch, and close to one another in time: the second finds what the first has
// written still in the L2 cache.
#include "tiles.cuh"

template <int N, int M, int R, int C, int BLOCKS, int SIGN, bool LONG>
__global__ __launch_bounds__(C* N / R, BLOCKS) void fft_columns(const float2* in, float2* out) {
    extern __shared__ float2 room[];
    constexpr int TILES = M / C;
    const long long start = static_cast<long long>(blockIdx.x / TILES) * N * M;
    const int first = blockIdx.x % TILES * C;
    columns_tile<N, M, R, C, SIGN, LONG>(in + start, out + start, room, first);
}

template <int N, int M, int R, int C, int BLOCKS, int SIGN>
__global__ __launch_bounds__(C* N / R, BLOCKS) void fft_turning(const float2* in, float2* out) {
    extern __shared__ float2 room[];
    constexpr int TILES = M / C;
    const long long start = static_cast<long long>(blockIdx.x / TILES) * N * M;
    const int first = blockIdx.x % TILES * C;
    turning_tile<N, M, R, C, SIGN>(in + start, out + start, room, first);
}

// ---- both passes in one launch ------------------------------------------------------------------

// Waits until `count` blocks have told. Everything that they wrote can be read after it.
__device__ inline void wait_for(const unsigned* told, unsigned count) {
    if (threadIdx.x == 0) {
        while (*static_cast<const volatile unsigned*>(told) < count)
            __nanosleep(50);
        __threadfence();
    }
    __syncthreads();
}

// The block has written (and read) what it had to.
__device__ inline void tell(unsigned* told) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(told, 1u);
    }
}

// Draws numbers 0, 1, 2 ... one by one, and the next one ahead while there is work to do.
class Tickets {
  public:
    __device__ Tickets(unsigned* counter, unsigned* place) : counter_(counter), place_(place) {
        if (threadIdx.x == 0)
            *place_ = atomicAdd(counter_, 1u);
        __syncthreads();
        now_ = *place_;
        ahead();
    }
    __device__ unsigned now() const {
        return now_;
    }
    __device__ void next() {
        __syncthreads();
        if (threadIdx.x == 0)
            *place_ = ahead_;
        __syncthreads();
        now_ = *place_;
        ahead();
    }

  private:
    __device__ void ahead() {
        if (threadIdx.x == 0)
            ahead_ = atomicAdd(counter_, 1u);
    }
    unsigned* counter_;
    unsigned* place_;  // in shared memory
    unsigned now_, ahead_ = 0;
};

// Tickets alternate between the first pass's tiles, one after the other through all items, and the
// second pass's, `lag` tiles behind. A ticket waits for lower ones only, which were drawn before:
// nobody waits for ever.
struct Task {
    int pass;
    long long item;
    int tile;
};

template <int TILES>
__device__ inline Task task_of(unsigned ticket, int lag) {
    const int pass = ticket % 2;
    const long long tile = static_cast<long long>(ticket / 2) - pass * lag;
    if (tile < 0)
        return {pass, -1, 0};  // the second pass has not begun
    return {pass, tile / TILES, static_cast<int>(tile % TILES)};
}

// in, out: items of N * M points. scratch: `kept` items, with more tiles than lag and one item.
// state: zeros, 1 + 2 * items of them.
template <int N, int M, int R, int C, int BLOCKS, int SIGN>
__global__ __launch_bounds__(C* N / R, BLOCKS) void fft_long(const float2* in, float2* out,
                                                             float2* scratch, int kept, int lag,
                                                             int items, unsigned* state) {
    extern __shared__ float2 room[];
    __shared__ unsigned place;
    constexpr int TILES = M / C, POINTS = N * M;
    static_assert(N == M);
    unsigned *written = state + 1, *read = state + 1 + items;
    const unsigned total = 2 * (items * TILES + lag);
    for (Tickets tickets(state, &place); tickets.now() < total; tickets.next()) {
        const Task task = task_of<TILES>(tickets.now(), lag);
        if (task.item < 0 || task.item >= items)
            continue;
        const long long start = task.item * POINTS;
        float2* between = scratch + task.item % kept * POINTS;
        const int first = task.tile * C;
        if (task.pass == 0) {
            if (task.item >= kept)
                wait_for(&read[task.item - kept], TILES);
            columns_tile<N, M, R, C, SIGN, true>(in + start, between, room, first);
            tell(&written[task.item]);
        } else {
            wait_for(&written[task.item], TILES);
            turning_tile<M, N, R, C, SIGN>(between, out + start, room, first);
            tell(&read[task.item]);
        }
    }
}

// in, out: pictures of N rows and M columns. state: zeros, 1 + pictures of them.
template <int N, int M, int R, int C, int BLOCKS, int SIGN>
__global__ __launch_bounds__(C* N / R, BLOCKS) void fft_pictures(const float2* in, float2* out,
                                                                 int pictures, int lag,
                                                                 unsigned* state) {
    extern __shared__ float2 room[];
    __shared__ unsigned place;
    constexpr int TILES = M / C, POINTS = N * M;
    static_assert(N == M);
    unsigned* written = state + 1;
    const unsigned total = 2 * (pictures * TILES + lag);
    for (Tickets tickets(state, &place); tickets.now() < total; tickets.next()) {
        const Task task = task_of<TILES>(tickets.now(), lag);
        if (task.item < 0 || task.item >= pictures)
            continue;
        const long long start = task.item * POINTS;
        const int first = task.tile * C;
        if (task.pass == 0) {
            rows_tile<M, R, C, SIGN>(in + start, out + start, room, first, N);
            tell(&written[task.item]);
        } else {
            wait_for(&written[task.item], TILES);
            columns_tile<N, M, R, C, SIGN, false>(out + start, out + start, room, first);
        }
    }
}
