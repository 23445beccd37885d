// One small kernel for each resource of a GPU: measure.py launches them and records what comes out.
// No kernel of a chapter is among them, so that an estimate is never fitted to what it is judged on.

constexpr int UNROLL = 16;
constexpr int CHAINS = 4;  // independent ones of a thread, so that none waits for the one before
constexpr int WORDS = 4096;

// ---- operations: each needs its own result of the time before

struct Fp32 {
    using Type = float;
    static __device__ float next(float x, float a, float b) {
        return fmaf(x, a, b);
    }
};

struct Fp64 {
    using Type = double;
    static __device__ double next(double x, double a, double b) {
        return fma(x, a, b);
    }
};

struct Multiply {  // of integers, and add
    using Type = int;
    static __device__ int next(int x, int a, int b) {
        return x * a + b;
    }
};

struct Integer {  // an addition and a bitwise operation: two instructions
    using Type = int;
    static __device__ int next(int x, int a, int b) {
        return (x + a) ^ b;
    }
};

struct Special {  // the unit of 2^x, sin, 1/sqrt; an addition keeps x small
    using Type = float;
    static __device__ float next(float x, float a, float b) {
        float y;
        asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
    }
};

struct Divide {  // of floats, rounded as IEEE wants it: a sequence of instructions
    using Type = float;
    static __device__ float next(float x, float a, float b) {
        return a / x;
    }
};

struct Convert {  // to int and back: two instructions
    using Type = float;
    static __device__ float next(float x, float a, float b) {
        return (float)(int)x;
    }
};

struct Shuffle {
    using Type = float;
    static __device__ float next(float x, float a, float b) {
        return __shfl_xor_sync(0xffffffff, x, 1);
    }
};

// cycles: of `rounds` * UNROLL operations, one after the other, of one warp.
template <typename Op>
__global__ void chain(long long* cycles, float* end, int rounds, float a, float b) {
    typename Op::Type x = threadIdx.x + a;
    const typename Op::Type s = a, t = b;
    const long long start = clock64();
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            x = Op::next(x, s, t);
    *cycles = clock64() - start;
    end[threadIdx.x] = x;
}

// As many as the GPU can: rounds * UNROLL * CHAINS operations of each thread.
template <typename Op>
__global__ void rate(float* end, int rounds, float a, float b) {
    typename Op::Type x[CHAINS];
    const typename Op::Type s = a, t = b;
    for (int c = 0; c < CHAINS; ++c)
        x[c] = threadIdx.x + c;
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
#pragma unroll
            for (int c = 0; c < CHAINS; ++c)
                x[c] = Op::next(x[c], s, t);
    typename Op::Type sum = 0;
    for (int c = 0; c < CHAINS; ++c)
        sum += x[c];
    if (sum == typename Op::Type(12345))  // never: so that nothing is left out as unused
        end[threadIdx.x] = sum;
}

// ---- shared memory: requests that take WAYS passes each

template <int WAYS>
__global__ void shared_reads(float* end, int rounds) {
    __shared__ float words[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x)
        words[i] = i;
    __syncthreads();
    const volatile float* mine = words + threadIdx.x % 32 * WAYS % 1024;
    float sum = 0;
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            sum += mine[k * 128];
    if (sum == 0.5f)
        end[threadIdx.x] = sum;
}

__global__ void shared_writes(float* end, int rounds) {
    __shared__ float words[WORDS];
    volatile float* mine = words + threadIdx.x;
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            mine[k * 32] = r;
    __syncthreads();
    if (words[threadIdx.x] == 0.5f)
        end[threadIdx.x] = 1;
}

// One warp: each read says where the next one is.
__global__ void shared_chain(long long* cycles, float* end, int rounds) {
    __shared__ int next[32];
    next[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int i = threadIdx.x;
    const long long start = clock64();
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            i = ((volatile int*)next)[i];
    *cycles = clock64() - start;
    end[threadIdx.x] = i;
}

// ---- barriers: cycles of the first block, all blocks of an SM at it

__global__ void barriers(long long* cycles, int rounds) {
    __syncthreads();
    const long long start = clock64();
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            __syncthreads();
    if (threadIdx.x == 0)
        cycles[blockIdx.x] = clock64() - start;
}

// ---- caches and memory

// Each warp reads `lines` 128-byte lines a request, all of them in L1: stride in words.
__global__ void l1_reads(float* end, const float* words, int rounds, int stride) {
    const int lane = threadIdx.x % 32;
    float sum = 0;
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            sum += words[(lane * stride + 32 * (r + k)) & (WORDS - 1)];
    if (sum == 0.5f)
        end[threadIdx.x] = sum;
}

// `rounds` times all of n/4 vectors, past L1.
__global__ void l2_reads(float* end, const float4* words, int n, int rounds) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    const int all = gridDim.x * blockDim.x;
    float sum = 0;
    for (int r = 0; r < rounds; ++r)
        for (int i = first; i < n; i += all) {
            const float4 v = __ldcg(words + i);
            sum += v.x + v.y + v.z + v.w;
        }
    if (sum == 0.5f)
        end[threadIdx.x] = sum;
}

__global__ void l2_writes(float4* words, int n, int rounds) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    const int all = gridDim.x * blockDim.x;
    for (int r = 0; r < rounds; ++r)
        for (int i = first; i < n; i += all)
            words[i] = make_float4(r, r, r, r);
}

// One float of every `stride`, of memory that no cache holds.
__global__ void sparse_reads(float* end, const float* words, int n, int stride) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    const int all = gridDim.x * blockDim.x;
    float sum = 0;
#pragma unroll 4
    for (int i = first; i < n; i += all)
        sum += __ldcg(words + (long long)i * stride);
    if (sum == 0.5f)
        end[threadIdx.x] = sum;
}

__global__ void sparse_writes(float* words, int n, int stride) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    const int all = gridDim.x * blockDim.x;
    for (int i = first; i < n; i += all)
        words[(long long)i * stride] = i;
}

// Each warp has one request of 128 bytes under way: where the next one is, the last one says.
// words: zeros. n: a power of two.
__global__ void one_in_flight(float* end, const int* words, long long n, int rounds) {
    const int warps = gridDim.x * blockDim.x / 32;
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    long long place = (long long)warp * 32 + threadIdx.x % 32;
    for (int r = 0; r < rounds; ++r) {
        place = (place + (long long)warps * 32 + __ldcg(words + place)) & (n - 1);
    }
    if (place == -1)
        end[threadIdx.x] = place;
}

// ---- atomics: lane l adds to counter l * stride % counters, in L2 or in shared memory

template <typename T>
__global__ void atomics(T* counters, int rounds, int mask, int warps_apart) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    T* mine = counters + ((threadIdx.x % 32 + i / 32 * warps_apart) & mask);
    for (int r = 0; r < rounds; ++r)
        atomicAdd(mine, T(i & 3));
}

template <typename T>
__global__ void shared_atomics(float* end, int rounds, int mask) {
    __shared__ T counters[1024];
    counters[threadIdx.x] = 0;
    __syncthreads();
    for (int r = 0; r < rounds; ++r)
        atomicAdd(counters + (threadIdx.x & mask), T(threadIdx.x & 3));
    __syncthreads();
    if (counters[threadIdx.x] == T(-1))
        end[threadIdx.x] = 1;
}

// ---- blocks, launches, clock

extern __shared__ int dynamic[];

__global__ void nothing() {}

__global__ void one_word(int* out, int write) {  // its shared memory says how many fit on an SM
    if (write)
        out[0] = dynamic[0];
}

__global__ void clocks(long long* both, int rounds) {
    long long from, to;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(from));
    const long long start = clock64();
    float x = threadIdx.x;
    for (int r = 0; r < rounds; ++r)
        x = fmaf(x, 0.5f, 1.0f);
    const long long cycles = clock64() - start;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(to));
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        both[0] = cycles;
        both[1] = to - from;
    }
    if (x == 0.25f)
        both[2] = 1;
}
