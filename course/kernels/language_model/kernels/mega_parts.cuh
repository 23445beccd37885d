// The parts of a token, as the warps of a block compute them that multiply. Each ends with numbers in
// global memory, which other blocks read behind the next barrier of the grid.
#pragma once
#include "mega_grid.cuh"

#ifndef HEAD
#define HEAD 64  // numbers of a head
#endif
#ifndef GROUP
#define GROUP 4  // heads of queries that share a head of keys
#endif
#ifndef PARTS
#define PARTS 8  // of a sequence's keys, for attention
#endif

constexpr int PAGE = 16;  // positions of a page of the cache
constexpr int EIGHT = 8;  // numbers that a lane takes at once: 16 bytes
constexpr int PAD = 32;  // numbers behind a row in shared memory: rows begin in other banks
constexpr int PAIRS = ROWS / 2;  // of rows of a tile: row r belongs to row r + PAIRS
constexpr int TWO = 2;  // tiles that a warp multiplies together
constexpr int SUMS = TILES * BATCH * ROWS;  // that a block's warps add up at once
static_assert(TILES % TWO == 0 && STAGES >= TWO, "tiles come by twos");
static_assert(SUMS % 32 == 0 && SUMS <= 32 * WARPS, "a thread has one sum, and warps are whole");

using number = __nv_bfloat16;

struct alignas(16) Eight {
    number x[EIGHT];
};

// As megakernel.Sizes has it.
struct Sizes {
    int layers, width, heads, kv_heads, hidden, vocabulary;
    int pages;  // of a sequence, in the table
    int cache_pages;  // of a layer
    int advance;  // by how much positions move on: 1; 0 keeps them where they are, to be timed
    float eps;
};

// What blocks leave for each other. Sequences' rows lie one behind the other.
struct Between {
    float* x;  // [width]: what goes through all layers
    float* q;  // [heads, HEAD], turned, times the scale of scores
    float* results;  // [heads, PARTS, HEAD]: weighted sums of values
    float2* states;  // [heads, PARTS]: the largest score, and the sum of weights
    number* hidden;  // [hidden]
    float* logits;  // [vocabulary]
    unsigned long long* best;  // the largest logit's rank
};

struct Cache {
    number *keys, *values;
    const int* table;

    // Where a row begins, in numbers.
    __device__ size_t at(const Sizes& sizes, int layer, int sequence, int position,
                         int kv_head) const {
        size_t page = table[sequence * sizes.pages + position / PAGE];
        page += (size_t)layer * sizes.cache_pages;
        return ((page * PAGE + position % PAGE) * sizes.kv_heads + kv_head) * HEAD;
    }
};

struct Shared {
    Ring ring;
    alignas(16) number activations[WARPS][BATCH][SLICE + PAD];
    float partial[2][TILES][WARPS][BATCH][ROWS];
    float found[WARPS][GROUP][HEAD + 2];
    float squares[WARPS][BATCH];
    float2 turn[BATCH][HEAD / 2];  // cosine and sine of each pair's angle
    int position[BATCH];
};

// 2 ** (score - most), and 0 where there is no score.
__device__ inline float weight_of(float score, float most) {
    return score == -INFINITY ? 0 : exp2f(score - most);
}

// ---- products: activations (sequences x columns) times a matrix

struct Multiplier {
    Shared& shared;
    Place place = {};
    Share share = {};
    int turn = 0;  // which half of `partial` is free

    // This warp's columns of the activations, by shared memory into the order of products.
    // source(y, sequence, column) gives 8 neighbours; behind the last column all are 0.
    template <class Source>
    __device__ void load(Activations& x, int chunk, int columns, Source source) {
        int lane = threadIdx.x % 32;
        int warp = threadIdx.x / 32;
        int first = chunk * CHUNK + warp * SLICE;
        auto& own = shared.activations[warp];
        __syncwarp();  // all lanes have read what was there
#pragma unroll
        for (int sequence = 0; sequence < BATCH; ++sequence)
            for (int i = lane * EIGHT; i < SLICE; i += 32 * EIGHT) {
                float y[EIGHT] = {};
                if (first + i < columns)
                    source(y, sequence, first + i);
                Eight rounded;
                for (int j = 0; j < EIGHT; ++j)
                    rounded.x[j] = (number)y[j];
                *(Eight*)&own[sequence][i] = rounded;
            }
        __syncwarp();
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
            x[step].all = lane / 4 < BATCH
                              ? *(const uint4*)&own[lane / 4][step * 32 + lane % 4 * EIGHT]
                              : make_uint4(0, 0, 0, 0);
    }

    // All of this block's tiles. load(x, chunk, whether it is the chunk's first time);
    // store(tile, sequence, row, sum, the sum of row ± PAIRS).
    template <class Load, class Store>
    __device__ void multiply(const Matrix& matrix, Load load, Store store) {
        int stride = gridDim.x;
        Activations x;
        for (int first = share.first; first < matrix.tiles; first += TILES * stride) {
            float sums[TILES / TWO][4] = {};
            for (int chunk = 0; chunk < matrix.chunks; ++chunk) {
                bool is_first = first == share.first;
                if (is_first || matrix.chunks > 1)
                    load(x, chunk, is_first);
#pragma unroll
                for (int i = 0; i < TILES; i += TWO)
                    if (first + i * stride < matrix.tiles)
                        take_two(sums[i / TWO], x, first + (i + 1) * stride < matrix.tiles);
            }
            add_up(sums);
            use_sums([&](int i, int sequence, int row, float sum, float other) {
                if (first + i * stride < matrix.tiles)
                    store(first + i * stride, sequence, row, sum, other);
            });
        }
        share.pass(matrix.tiles);
    }

    // Multiplies the ring's next two stages; where there is one alone, it stands for both.
    __device__ void take_two(float (&sums)[4], const Activations& x, bool are_two) {
        Place first = place;
        place.next();
        Place second = are_two ? place : first;
        if (are_two)
            place.next();
        barrier_wait(&shared.ring.full[first.stage], first.parity);
        barrier_wait(&shared.ring.full[second.stage], second.parity);
        const auto& stages = shared.ring.stages;
        multiply_stages(sums, x, stages[first.stage], stages[second.stage]);
        __syncwarp();  // all lanes have read
        if (threadIdx.x % 32 == 0)
            barrier_arrive(&shared.ring.empty[first.stage]);
        if (threadIdx.x % 32 == 0 && are_two)
            barrier_arrive(&shared.ring.empty[second.stage]);
    }

    // Each warp has summed its own columns: leave that where all can add it up. In two halves, so
    // that a warp may write the next tiles' while others still read.
    __device__ void add_up(const float (&sums)[TILES / TWO][4]) {
        int row = threadIdx.x % 32 / 4;
        int sequence = threadIdx.x % 4 * 2;
        turn ^= 1;
#pragma unroll
        for (int i = 0; i < TILES; ++i)
            for (int s = 0; s < 2; ++s)
                if (sequence + s < BATCH)
                    shared.partial[turn][i][threadIdx.x / 32][sequence + s][row] =
                        sums[i / TWO][i % TWO * 2 + s];
        sync_warps();
    }

    // A thread has one sum of all warps: use(which tile, sequence, row, sum, the sum of row ± PAIRS).
    template <class Use>
    __device__ void use_sums(Use use) {
        int n = threadIdx.x;
        if (n >= SUMS)
            return;
        int i = n / (BATCH * ROWS);
        int sequence = n / ROWS % BATCH;
        int row = n % ROWS;
        float sum = 0;
        for (int w = 0; w < WARPS; ++w)
            sum += shared.partial[turn][i][w][sequence][row];
        float other = __shfl_xor_sync(~0u, sum, PAIRS);
        use(i, sequence, row, sum, other);
    }

    // ---- the norm: what it multiplies all numbers by can wait until after the product

    // Loads numbers times gain, and the first time sums up the numbers' squares.
    __device__ void load_normed(Activations& x, int chunk, bool is_first, const float* numbers,
                                const number* gain, int width) {
        float squares[BATCH] = {};
        load(x, chunk, width, [&](float (&y)[EIGHT], int sequence, int column) {
            const float* from = numbers + (size_t)sequence * width + column;
            float4 both[2] = {((const float4*)from)[0], ((const float4*)from)[1]};
            Eight gains = *(const Eight*)(gain + column);
            for (int j = 0; j < EIGHT; ++j) {
                float one = ((const float*)both)[j];
                squares[sequence] += one * one;
                y[j] = one * (float)gains.x[j];
            }
        });
        if (!is_first)
            return;
        for (int sequence = 0; sequence < BATCH; ++sequence) {
            float sum = squares[sequence];
            for (int other = 16; other > 0; other /= 2)
                sum += __shfl_xor_sync(~0u, sum, other);
            float& own = shared.squares[threadIdx.x / 32][sequence];
            if (threadIdx.x % 32 == 0)
                own = chunk ? own + sum : sum;
        }
    }

    // One over the root of a sequence's mean square; behind add_up.
    __device__ float norm_of(int sequence, int width, float eps) const {
        float sum = 0;
        for (int w = 0; w < WARPS; ++w)
            sum += shared.squares[w][sequence];
        return rsqrtf(sum / width + eps);
    }
};

// ---- attention

// What is known of one query: 8 columns of the weighted sum of values, the largest score, and the sum
// of weights relative to it.
struct Found {
    float most = -INFINITY, sum = 0;
    float result[EIGHT] = {};

    // The same, relative to a larger score.
    __device__ void grow(float next) {
        float factor = weight_of(most, next);
        most = next;
        sum *= factor;
        for (int j = 0; j < EIGHT; ++j)
            result[j] *= factor;
    }
    // What other keys add.
    __device__ void add(float their_most, float their_sum, const float (&theirs)[EIGHT]) {
        grow(fmaxf(most, their_most));
        float weight = weight_of(their_most, most);
        sum += weight * their_sum;
        for (int j = 0; j < EIGHT; ++j)
            result[j] += weight * theirs[j];
    }
    // What the lane `other` further knows of other keys.
    __device__ void join(int other) {
        float theirs[EIGHT];
        for (int j = 0; j < EIGHT; ++j)
            theirs[j] = __shfl_xor_sync(~0u, result[j], other);
        float their_most = __shfl_xor_sync(~0u, most, other);
        add(their_most, __shfl_xor_sync(~0u, sum, other), theirs);
    }
};

// A part of attention that a block computes: keys from `first` to before `end`.
struct Task {
    int sequence, kv_head, part, first, end;

    __device__ Task(const Shared& shared, const Sizes& sizes, int task) {
        part = task % PARTS;
        kv_head = task / PARTS % sizes.kv_heads;
        sequence = task / PARTS / sizes.kv_heads;
        int length = shared.position[sequence] + 1;
        int chunk = (length + PARTS - 1) / PARTS;
        first = part * chunk;
        end = min(first + chunk, length);
    }
};

constexpr int LANES = HEAD / EIGHT;  // that share a key
constexpr int KEYS = 32 / LANES;  // of a warp at once
constexpr int AT_ONCE = 4;  // keys of a lane on their way together
static_assert(HEAD % EIGHT == 0 && 32 % LANES == 0, "a warp takes whole keys");

// Adds AT_ONCE keys of each lane: those of `score` that are -INFINITY are none.
__device__ inline void add_keys(Found& found, const Eight (&k)[AT_ONCE], const Eight (&v)[AT_ONCE],
                                const float (&q)[EIGHT], const bool (&is_there)[AT_ONCE]) {
    float score[AT_ONCE];
    float most = found.most;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
        score[i] = 0;
        for (int j = 0; j < EIGHT; ++j)
            score[i] += q[j] * (float)k[i].x[j];
        for (int other = LANES / 2; other > 0; other /= 2)
            score[i] += __shfl_xor_sync(~0u, score[i], other);
        if (!is_there[i])
            score[i] = -INFINITY;
        most = fmaxf(most, score[i]);
    }
    found.grow(most);
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
        float weight = weight_of(score[i], most);
        found.sum += weight;
        for (int j = 0; j < EIGHT; ++j)
            found.result[j] += weight * (float)v[i].x[j];
    }
}

// A head of keys from `first` to before `end`, and the queries that share it, by a whole block.
__device__ inline void attend_part(Shared& shared, const Sizes& sizes, const Between& between,
                                   const Cache& cache, int layer, const Task& task) {
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    int column = lane % LANES * EIGHT;
    float q[GROUP][EIGHT];
    Found found[GROUP];
    int query = task.sequence * sizes.heads + task.kv_head * GROUP;
    const float* from = between.q + query * HEAD + column;
#pragma unroll
    for (int g = 0; g < GROUP; ++g)
        for (int j = 0; j < EIGHT; ++j)
            q[g][j] = from[g * HEAD + j];
    for (int first = task.first; first < task.end; first += AT_ONCE * WARPS * KEYS) {
        Eight k[AT_ONCE], v[AT_ONCE];
        bool is_there[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            int key = first + (i * WARPS + warp) * KEYS + lane / LANES;
            is_there[i] = key < task.end;
            key = min(key, task.end - 1);
            size_t at = cache.at(sizes, layer, task.sequence, key, task.kv_head) + column;
            k[i] = *(const Eight*)(cache.keys + at);
            v[i] = *(const Eight*)(cache.values + at);
        }
#pragma unroll
        for (int g = 0; g < GROUP; ++g)
            add_keys(found[g], k, v, q[g], is_there);
    }
#pragma unroll
    for (int g = 0; g < GROUP; ++g) {
        for (int other = LANES; other < 32; other *= 2)
            found[g].join(other);
        if (lane >= LANES)
            continue;
        float* to = shared.found[warp][g];
        for (int j = 0; j < EIGHT; ++j)
            to[column + j] = found[g].result[j];
        to[HEAD] = found[g].most;
        to[HEAD + 1] = found[g].sum;
    }
}

// What the block's warps found, as one, to global memory.
__device__ inline void keep_part(const Shared& shared, const Sizes& sizes, const Between& between,
                                 const Task& task) {
    for (int n = threadIdx.x; n < GROUP * HEAD; n += 32 * WARPS) {
        int g = n / HEAD;
        int column = n % HEAD;
        float most = -INFINITY, sum = 0, result = 0;
        for (int w = 0; w < WARPS; ++w)
            most = fmaxf(most, shared.found[w][g][HEAD]);
        for (int w = 0; w < WARPS; ++w) {
            float weight = weight_of(shared.found[w][g][HEAD], most);
            sum += weight * shared.found[w][g][HEAD + 1];
            result += weight * shared.found[w][g][column];
        }
        size_t row = task.sequence * sizes.heads + task.kv_head * GROUP + g;
        row = row * PARTS + task.part;
        between.results[row * HEAD + column] = result;
        if (column == 0)
            between.states[row] = make_float2(most, sum);
    }
}

// Attention of all sequences and heads, each in PARTS parts of about equal length.
__device__ inline void attend(Shared& shared, const Sizes& sizes, const Between& between,
                              const Cache& cache, int layer) {
    int tasks = BATCH * sizes.kv_heads * PARTS;
    for (int i = blockIdx.x; i < tasks; i += gridDim.x) {
        Task task(shared, sizes, i);
        attend_part(shared, sizes, between, cache, layer, task);
        sync_warps();  // every warp has written what it found
        keep_part(shared, sizes, between, task);
        sync_warps();  // all have read it
    }
}

// The keys and values that `attend` will read begin their way into L2 while others still multiply.
__device__ inline void fetch_keys(const Shared& shared, const Sizes& sizes, const Cache& cache,
                                  int layer) {
    int tasks = BATCH * sizes.kv_heads * PARTS;
    for (int i = blockIdx.x; i < tasks; i += gridDim.x) {
        Task task(shared, sizes, i);
        for (int key = task.first + threadIdx.x; key < task.end; key += 32 * WARPS) {
            size_t at = cache.at(sizes, layer, task.sequence, key, task.kv_head);
            asm volatile("prefetch.global.L2 [%0];" ::"l"(cache.keys + at));
            asm volatile("prefetch.global.L2 [%0];" ::"l"(cache.values + at));
        }
    }
}

// 8 columns of what attention gives: its parts as one. All loads are on their way together.
__device__ inline void attended(float (&y)[EIGHT], const Sizes& sizes, const Between& between,
                                int sequence, int column) {
    size_t row = (size_t)(sequence * sizes.heads + column / HEAD) * PARTS;
    const float* results = between.results + row * HEAD + column % HEAD;
    float2 states[PARTS];
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        states[p] = between.states[row + p];
        most = fmaxf(most, states[p].x);
    }
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        float weight = weight_of(states[p].x, most);
        sum += weight * states[p].y;
        const float4* from = (const float4*)(results + p * HEAD);
        float4 low = from[0], high = from[1];
        float part[EIGHT] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        for (int j = 0; j < EIGHT; ++j)
            y[j] += weight * part[j];
    }
    float factor = 1 / sum;
    for (int j = 0; j < EIGHT; ++j)
        y[j] *= factor;
}

// A logit as an integer that is ordered alike, above its column's complement: of equals the first.
__device__ inline unsigned long long ranked(float x, int column) {
    unsigned bits = __float_as_uint(x);
    bits = bits >> 31 ? ~bits : bits | 1u << 31;
    return (unsigned long long)bits << 32 | ~(unsigned)column;
}
