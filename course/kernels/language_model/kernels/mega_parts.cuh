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
constexpr int MOST_KEYS = 512;  // of a part of attention whose pages are looked up but once
constexpr int EIGHT = 8;  // numbers that a lane takes at once: 16 bytes
constexpr int PAD = 32;  // numbers behind a row in shared memory: rows begin in other banks
constexpr int PAIRS = ROWS / 2;  // of rows of a tile: row r belongs to row r + PAIRS
constexpr int SUMS = TILES * BATCH * ROWS;  // that a block's warps add up at once
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
    number* results;  // [heads, PARTS, HEAD]: weighted sums of values
    float2* states;  // [heads, PARTS]: the largest score, and the sum of weights
    number* hidden;  // [hidden]
    float* logits;  // [vocabulary]
    unsigned long long* best;  // the largest logit's rank
};

struct Cache {
    number *keys, *values;
    const int* table;

    // Which row of a layer's has a position: the page table's word for it.
    __device__ int row(const Sizes& sizes, int sequence, int position) const {
        return table[sequence * sizes.pages + position / PAGE] * PAGE + position % PAGE;
    }
    // Where a head's numbers begin in a row of a layer.
    __device__ size_t at(const Sizes& sizes, int layer, int row, int kv_head) const {
        size_t all = (size_t)layer * sizes.cache_pages * PAGE + row;
        return (all * sizes.kv_heads + kv_head) * HEAD;
    }
};

struct Shared {
    Ring ring;
    alignas(16) number activations[WARPS][BATCH][SLICE + PAD];
    float partial[2][TILES][WARPS][BATCH][ROWS];
    float found[WARPS][GROUP][HEAD + 2];
    float squares[WARPS][BATCH];
    float2 turn[BATCH][HEAD / 2];  // cosine and sine of each pair's angle
    int token[BATCH], position[BATCH];
    int row_of_key[MOST_KEYS];  // of the block's first part of attention, as Cache::row has it
    int row_of_new[BATCH];  // of the position that this token adds
};

// 2 ** (score - most), and 0 where there is no score.
__device__ inline float weight_of(float score, float most) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(score - most));
    return score == -INFINITY ? 0 : power;
}

__device__ inline void copy_eight(float (&y)[EIGHT], const float* from) {
    float4 low = ((const float4*)from)[0];
    float4 high = ((const float4*)from)[1];
    const float all[EIGHT] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    for (int j = 0; j < EIGHT; ++j)
        y[j] = all[j];
}

// ---- products: a matrix times activations (columns x sequences)

// What a warp does with the ring, and how a block adds up what its warps found.
struct Multiplier {
    Shared& shared;
    Place place = {};
    Share share = {};
    int turn = 0;  // which half of `partial` is in use

    // Eight numbers of this warp's columns of a sequence, to where all its lanes find them.
    __device__ void put(int sequence, int column, const float (&y)[EIGHT]) {
        Eight rounded;
        for (int j = 0; j < EIGHT; ++j)
            rounded.x[j] = (number)y[j];
        *(Eight*)&shared.activations[threadIdx.x / 32][sequence][column] = rounded;
    }

    // What the warp's lanes have put, in the order of products. (The next is put behind a product,
    // at whose end all lanes meet.)
    __device__ void take(Activations& x) const {
        int lane = threadIdx.x % 32;
        __syncwarp();  // all lanes have put theirs
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            x[step].all = make_uint4(0, 0, 0, 0);
            if (lane / 4 < BATCH)
                x[step].all =
                    *(const uint4*)&shared
                         .activations[threadIdx.x / 32][lane / 4][step * 32 + lane % 4 * EIGHT];
        }
    }

    // Multiplies the ring's next stages: of `tile`, and of this block's tiles behind it that there
    // are. For one that there is not the first one stands.
    __device__ void take_stages(float (&sums)[TOGETHER / 2][4], const Activations& x, int from,
                                int tile, int tiles) {
        Place places[TOGETHER];
        bool is_there[TOGETHER];
        const unsigned char* stages[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) {
            is_there[i] = i == 0 || tile + i * (int)gridDim.x < tiles;
            places[i] = is_there[i] ? place : places[0];
            if (is_there[i])
                place.next();
            barrier_wait(&shared.ring.full[places[i].stage], places[i].parity);
            stages[i] = shared.ring.stages[places[i].stage];
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; i += 2)
            multiply_stages(sums[i / 2], x, from, stages[i], stages[i + 1]);
        __syncwarp();  // all lanes have read
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i)
            if (threadIdx.x % 32 == 0 && is_there[i])
                barrier_arrive(&shared.ring.empty[places[i].stage]);
    }

    // Each warp has summed its own columns of the tiles i and on: leave that for sum_of.
    __device__ void leave(const float (&sums)[TOGETHER / 2][4], int i) {
        int row = threadIdx.x % 32 / 4;
        int sequence = threadIdx.x % 4 * 2;
        auto& to = shared.partial[turn];
#pragma unroll
        for (int j = 0; j < 2 * TOGETHER; ++j)
            if (sequence + j % 2 < BATCH)
                to[i + j / 2][threadIdx.x / 32][sequence + j % 2][row] = sums[j / 4][j % 4];
    }

    // The sum of all warps' columns.
    __device__ float sum_of(int i, int sequence, int row) const {
        float sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w)
            sum += shared.partial[turn][i][w][sequence][row];
        return sum;
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
    bool is_noted;  // its keys' rows are in shared memory

    __device__ Task(const Shared& shared, const Sizes& sizes, int task) {
        part = task % PARTS;
        kv_head = task / PARTS % sizes.kv_heads;
        sequence = task / PARTS / sizes.kv_heads;
        int length = shared.position[sequence] + 1;
        int chunk = (length + PARTS - 1) / PARTS;
        first = part * chunk;
        end = min(first + chunk, length);
        is_noted = task == blockIdx.x && chunk <= MOST_KEYS;
    }
    __device__ int row(const Shared& shared, const Sizes& sizes, const Cache& cache,
                       int key) const {
        return is_noted ? shared.row_of_key[key - first] : cache.row(sizes, sequence, key);
    }
};

// Once in a token, where all layers find it: the rows of this block's keys, and those to be added.
__device__ inline void note_rows(Shared& shared, const Sizes& sizes, const Cache& cache) {
    if (threadIdx.x < BATCH)
        shared.row_of_new[threadIdx.x] =
            cache.row(sizes, threadIdx.x, shared.position[threadIdx.x]);
    if (blockIdx.x >= BATCH * sizes.kv_heads * PARTS)
        return;
    Task task(shared, sizes, blockIdx.x);
    for (int key = task.first + threadIdx.x; task.is_noted && key < task.end; key += 32 * WARPS)
        shared.row_of_key[key - task.first] = cache.row(sizes, task.sequence, key);
}

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

// A part of a head's keys, and the queries that share it, by a whole block. A lane has AT_ONCE keys on
// their way together.
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
        copy_eight(q[g], from + g * HEAD);
#pragma unroll 1
    for (int first = task.first; first < task.end; first += AT_ONCE * WARPS * KEYS) {
        Eight k[AT_ONCE], v[AT_ONCE];
        bool is_there[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            int key = first + (i * WARPS + warp) * KEYS + lane / LANES;
            is_there[i] = key < task.end;
            int row = task.row(shared, sizes, cache, min(key, task.end - 1));
            size_t at = cache.at(sizes, layer, row, task.kv_head) + column;
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
        between.results[row * HEAD + column] = (number)result;
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
    if (blockIdx.x >= BATCH * sizes.kv_heads * PARTS)
        return;
    Task task(shared, sizes, blockIdx.x);
    for (int key = task.first + threadIdx.x; task.is_noted && key < task.end; key += 32 * WARPS) {
        size_t at = cache.at(sizes, layer, shared.row_of_key[key - task.first], task.kv_head);
        asm volatile("prefetch.global.L2 [%0];" ::"l"(cache.keys + at));
        asm volatile("prefetch.global.L2 [%0];" ::"l"(cache.values + at));
    }
}

// 8 neighbouring numbers of 16 bits.
__device__ inline void widen(float (&y)[EIGHT], const number* from) {
    Eight numbers = *(const Eight*)from;
    for (int j = 0; j < EIGHT; ++j)
        y[j] = (float)numbers.x[j];
}

// 8 columns of what attention gives: a sequence's parts as one.
__device__ inline void attended(float (&y)[EIGHT], const Sizes& sizes, const Between& between,
                                int sequence, int column) {
    size_t row = (size_t)(sequence * sizes.heads + column / HEAD) * PARTS;
    const number* results = between.results + row * HEAD + column % HEAD;
    Eight parts[PARTS];
    float2 states[PARTS];
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        states[p] = between.states[row + p];
        parts[p] = *(const Eight*)(results + p * HEAD);
        most = fmaxf(most, states[p].x);
    }
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        float weight = weight_of(states[p].x, most);
        sum += weight * states[p].y;
        for (int j = 0; j < EIGHT; ++j)
            y[j] += weight * (float)parts[p].x[j];
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
