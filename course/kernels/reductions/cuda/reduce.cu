// Many values into one, for any operation that does not care how its values are grouped: the sum's
// fast kernel with the operation taken out. `reduce<Max, 512, 8>` is the maximum, and so on.
//
// An operation has a State, which is what a part of the array comes down to, and says
//   nothing()           the state of no elements at all
//   add(state, chunk)   a few more elements, from `index` on
//   join(a, b)          two parts' states make one
//   result(state)       what is asked for in the end
#include "warps.cuh"

// A few elements of one array, or of two: ITEMS / 4 fours, which lie `step` apart; or just one.
template <int ITEMS>
struct Chunk {
    float a[ITEMS], b[ITEMS];
    long long first, step;

    __device__ long long index(int i) const {
        return first + i / 4 * step + i % 4;
    }
};

__device__ inline float minus_infinity() {
    return __int_as_float(0xff800000);
}

// ---- operations ----------------------------------------------------------------------------

struct Sum {
    using State = double;
    using Result = double;
    static constexpr int ARRAYS = 1;

    static __device__ State nothing() {
        return 0;
    }
    template <int ITEMS>
    static __device__ void add(State& state, const Chunk<ITEMS>& chunk) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            sum += chunk.a[i];
        state += sum;
    }
    static __device__ State join(State a, State b) {
        return a + b;
    }
    static __device__ Result result(State state) {
        return state;
    }
};

struct SumOfSquares : Sum {  // its root is the Euclidean norm
    template <int ITEMS>
    static __device__ void add(State& state, const Chunk<ITEMS>& chunk) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            sum += chunk.a[i] * chunk.a[i];
        state += sum;
    }
};

struct Dot : Sum {
    static constexpr int ARRAYS = 2;

    template <int ITEMS>
    static __device__ void add(State& state, const Chunk<ITEMS>& chunk) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            sum += chunk.a[i] * chunk.b[i];
        state += sum;
    }
};

struct Max {  // NaN, if there is one, as NumPy has it
    using State = float;
    using Result = float;
    static constexpr int ARRAYS = 1;

    static __device__ State nothing() {
        return minus_infinity();
    }
    template <int ITEMS>
    static __device__ void add(State& state, const Chunk<ITEMS>& chunk) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            state = join(state, chunk.a[i]);
    }
    static __device__ State join(State a, State b) {
        return a > b || isnan(a) ? a : b;
    }
    static __device__ Result result(State state) {
        return state;
    }
};

struct Place {
    float value;
    int unused;
    long long index;
};

struct ArgMax {  // of equal values the first; the first NaN before everything else
    using State = Place;
    using Result = long long;
    static constexpr int ARRAYS = 1;
    static constexpr long long NOWHERE = 0x7fffffffffffffff;

    static __device__ State nothing() {
        return {minus_infinity(), 0, NOWHERE};
    }
    static __device__ bool beats(float a, float b) {
        return a > b || (isnan(a) && !isnan(b));
    }
    template <int ITEMS>
    static __device__ void add(State& state, const Chunk<ITEMS>& chunk) {
        // A thread meets its elements in their order, so a later one must beat an earlier one.
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            if (beats(chunk.a[i], state.value) || state.index == NOWHERE)
                state = {chunk.a[i], 0, chunk.index(i)};
    }
    static __device__ State join(State a, State b) {
        if (beats(a.value, b.value))
            return a;
        if (beats(b.value, a.value))
            return b;
        return a.index < b.index ? a : b;
    }
    static __device__ Result result(State state) {
        return state.index;
    }
};

struct Part {
    double count, sum, squares;  // squares: the sum of (x - mean)^2
};

struct Moments {  // mean and variance (the population's) in one pass: Chan, Golub, LeVeque (1979)
    using State = Part;
    using Result = double2;
    static constexpr int ARRAYS = 1;

    static __device__ State nothing() {
        return {0, 0, 0};
    }
    template <int ITEMS>
    static __device__ void add(State& state, const Chunk<ITEMS>& chunk) {
        float sum = 0, squares = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            sum += chunk.a[i];
        const float mean = sum / ITEMS;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const float apart = chunk.a[i] - mean;
            squares += apart * apart;
        }
        state = join(state, {ITEMS, sum, squares});
    }
    static __device__ State join(State a, State b) {
        if (a.count == 0)
            return b;
        if (b.count == 0)
            return a;
        const double count = a.count + b.count;
        const double apart = b.sum / b.count - a.sum / a.count;
        const double between = apart * apart * (a.count * b.count / count);
        return {count, a.sum + b.sum, a.squares + b.squares + between};
    }
    static __device__ Result result(State state) {
        return {state.sum / state.count, state.squares / state.count};
    }
};

// ---- warp, block, grid ---------------------------------------------------------------------

// The state of the lane whose number differs in the bits of `step`, in words of 32 bits.
template <typename State>
__device__ inline State of_other_lane(State state, int step) {
    constexpr int WORDS = sizeof(State) / 4;
    unsigned words[WORDS];
    memcpy(words, &state, sizeof(State));
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        words[i] = __shfl_xor_sync(EVERYONE, words[i], step);
    memcpy(&state, words, sizeof(State));
    return state;
}

template <typename Op>
__device__ inline typename Op::State join_warp(typename Op::State state) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        state = Op::join(state, of_other_lane(state, step));
    return state;
}

// The state of the block, in every thread of warp 0.
template <typename Op, int THREADS>
__device__ inline typename Op::State join_block(typename Op::State state) {
    using State = typename Op::State;
    __shared__ __align__(16) unsigned char memory[THREADS / WARP * sizeof(State)];
    State* states = reinterpret_cast<State*>(memory);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    state = join_warp<Op>(state);
    if (lane == 0)
        states[warp] = state;
    __syncthreads();
    state = lane < THREADS / WARP ? states[lane] : Op::nothing();
    __syncthreads();  // before anyone uses the memory again
    return join_warp<Op>(state);
}

__device__ inline void read_four(float* to, const float* from) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

// a, b: n floats at multiples of 16 bytes (b only where the operation has two arrays).
// partial: a State for each block. arrived: 0 before the first launch; each launch leaves it 0.
template <typename Op, int THREADS, int LOADS>
__global__ void __launch_bounds__(THREADS) reduce(const float* a, const float* b, long long n,
                                                  double* partial, unsigned* arrived, double* out) {
    using State = typename Op::State;
    constexpr int STEP = THREADS * 4;  // from one of a thread's chunks to the next
    const long long stride = static_cast<long long>(gridDim.x) * STEP * LOADS;
    State* states = reinterpret_cast<State*>(partial);
    __shared__ bool last;

    State state = Op::nothing();
    long long first = static_cast<long long>(blockIdx.x) * STEP * LOADS + threadIdx.x * 4;
    for (; first + (LOADS - 1) * STEP + 4 <= n; first += stride) {
        Chunk<4 * LOADS> chunk;
        chunk.first = first;
        chunk.step = STEP;
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            read_four(&chunk.a[4 * i], a + first + i * STEP);
            if (Op::ARRAYS == 2)
                read_four(&chunk.b[4 * i], b + first + i * STEP);
        }
        Op::add(state, chunk);
    }
    for (int i = 0; i < 4 * LOADS; i++) {  // what is left of the last stride
        const long long index = first + i / 4 * STEP + i % 4;
        if (index < n)
            Op::add(state, Chunk<1>{{a[index]}, {Op::ARRAYS == 2 ? b[index] : 0}, index, 0});
    }

    state = join_block<Op, THREADS>(state);
    if (threadIdx.x == 0) {
        states[blockIdx.x] = state;
        __threadfence();  // whoever sees that this block has arrived sees its state too
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    state = Op::nothing();
    for (int block = threadIdx.x; block < gridDim.x; block += THREADS)
        state = Op::join(state, states[block]);
    state = join_block<Op, THREADS>(state);
    if (threadIdx.x == 0) {
        *reinterpret_cast<typename Op::Result*>(out) = Op::result(state);
        *arrived = 0;
    }
}
