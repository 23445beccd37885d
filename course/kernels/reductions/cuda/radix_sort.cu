// Sorts 32-bit keys: four passes, each by one byte, each a stable counting sort in one go over
// memory ("onesweep": Adinets and Merrill, 2022).
//
//   count_digits   how often each byte value occurs, for all four passes at once
//   scan_digits    where each value's keys begin in the result
//   sort_by_digit  a block takes a tile, ranks its keys by their digit, learns by looking back how
//                  many keys with the same digit lie in the tiles before, and moves its keys there
#include "warps.cuh"

constexpr int BITS = 8, DIGITS = 1 << BITS, PASSES = 32 / BITS;

__device__ inline int digit_of(unsigned key, int pass) {
    return key >> (pass * BITS) & (DIGITS - 1);
}

// Let others work for a moment before one asks again.
__device__ inline void pause() {
    __nanosleep(20);
}

// ---- how often, and where ------------------------------------------------------------------

// counts[PASSES][DIGITS]: zeros before. keys: at a multiple of 16 bytes.
__global__ void count_digits(const unsigned* keys, long long n, unsigned long long* counts) {
    __shared__ unsigned local[PASSES][DIGITS];
    for (int i = threadIdx.x; i < PASSES * DIGITS; i += blockDim.x)
        local[i / DIGITS][i % DIGITS] = 0;
    __syncthreads();

    const uint4* fours = reinterpret_cast<const uint4*>(keys);
    const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
    const long long me = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (long long i = me; i < n / 4; i += threads) {
        const uint4 four = fours[i];
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            atomicAdd(&local[pass][digit_of(four.x, pass)], 1u);
            atomicAdd(&local[pass][digit_of(four.y, pass)], 1u);
            atomicAdd(&local[pass][digit_of(four.z, pass)], 1u);
            atomicAdd(&local[pass][digit_of(four.w, pass)], 1u);
        }
    }
    const long long rest = n / 4 * 4 + me;
    if (rest < n)
        for (int pass = 0; pass < PASSES; pass++)
            atomicAdd(&local[pass][digit_of(keys[rest], pass)], 1u);
    __syncthreads();

    for (int i = threadIdx.x; i < PASSES * DIGITS; i += blockDim.x) {
        const unsigned count = local[i / DIGITS][i % DIGITS];
        if (count > 0)
            atomicAdd(&counts[i], static_cast<unsigned long long>(count));
    }
}

// The sum of the values of threads 0 to threadIdx.x - 1. All DIGITS threads call it; sums: shared,
// room for a value of each of their warps.
template <typename T>
__device__ inline T sum_before(T value, T* sums) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const T through = warp_scan(value, lane);
    if (lane == WARP - 1 && warp < DIGITS / WARP)
        sums[warp] = through;
    __syncthreads();
    T before = through - value;
    for (int w = 0; w < warp && w < DIGITS / WARP; w++)
        before += sums[w];
    return before;
}

// A block of DIGITS threads for each pass: counts become places.
__global__ void scan_digits(unsigned long long* counts) {
    __shared__ unsigned long long sums[DIGITS / WARP];
    unsigned long long* count = &counts[blockIdx.x * DIGITS + threadIdx.x];
    *count = sum_before(*count, sums);
}

// ---- a pass --------------------------------------------------------------------------------

// What a tile tells of one digit, in one word: two bits say what the rest of the bits are.
template <typename Word>
struct Told {
    static constexpr int SHIFT = sizeof(Word) * 8 - 2;
    static constexpr Word COUNT = Word(1) << SHIFT;  // how many keys of this tile
    static constexpr Word PREFIX = Word(2) << SHIFT;  // how many of this tile and all before
    static constexpr Word NUMBER = COUNT - 1;
};

template <typename Word>
__device__ inline Word read_word(const Word* word) {
    return *static_cast<const volatile Word*>(word);
}

template <typename Word>
__device__ inline void write_word(Word* word, Word content) {
    *static_cast<volatile Word*>(word) = content;
}

// How many keys with this thread's digit lie in the tiles before; told[tiles][DIGITS].
template <typename Word>
__device__ inline Word look_back(const Word* told, unsigned tile, int digit) {
    Word before = 0;
    for (long long t = static_cast<long long>(tile) - 1; t >= 0; t--) {
        Word word = read_word(&told[t * DIGITS + digit]);
        while (word == 0) {
            pause();
            word = read_word(&told[t * DIGITS + digit]);
        }
        before += word & Told<Word>::NUMBER;
        if (word & Told<Word>::PREFIX)
            break;
    }
    return before;
}

// The lanes whose digit is that of mine, as a mask: by a vote on each bit. (__match_any_sync gives
// the same in one instruction, which takes longer than these eight votes.)
__device__ inline unsigned lanes_with(int digit) {
    unsigned same = EVERYONE;
#pragma unroll
    for (int bit = 0; bit < BITS; bit++) {
        const unsigned mine = digit >> bit & 1;
        const unsigned others_have = __ballot_sync(EVERYONE, mine);
        same &= others_have ^ (mine - 1);  // mine - 1: all bits where mine is 0, so it turns round
    }
    return same;
}

// places: where each digit's keys begin in `out`. told: zeros, DIGITS words for each tile.
// drawn: zero; the tiles' numbers are drawn from it, so that no block waits for one that has not
// begun. Word: 32 bits for fewer than 2^30 keys, else 64.
// Dynamic shared memory: room for a tile and DIGITS counts a warp. BLOCKS: how many should fit on a
// multiprocessor.
template <typename Word, int THREADS, int ITEMS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    sort_by_digit(const unsigned* keys, unsigned* out, long long n, int pass,
                  const unsigned long long* places, Word* told, unsigned* drawn) {
    static_assert(THREADS >= DIGITS, "a thread a digit");
    constexpr int WARPS = THREADS / WARP, TILE = THREADS * ITEMS;
    extern __shared__ unsigned sorted[];  // [TILE]; behind it
    unsigned (*counts)[DIGITS] = reinterpret_cast<unsigned (*)[DIGITS]>(sorted + TILE);  // [WARPS]
    __shared__ long long shift[DIGITS];  // from a key's place in `sorted` to that in `out`
    __shared__ unsigned sums[DIGITS / WARP];
    __shared__ unsigned tile;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;

    if (threadIdx.x == 0)
        tile = atomicAdd(drawn, 1u);
    for (int digit = lane; digit < DIGITS; digit += WARP)
        counts[warp][digit] = 0;
    __syncthreads();
    const long long first = static_cast<long long>(tile) * TILE;
    const int items = n - first < TILE ? static_cast<int>(n - first) : TILE;

    // Each warp loads its part, in rows of 32. Behind the end stand the largest keys: they come
    // last in every pass, and are not written.
    unsigned key[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int place = (warp * ITEMS + i) * WARP + lane;
        key[i] = place < items ? keys[first + place] : 0xffffffff;
    }

    // counts: how many each warp has so far. Its rank among the warp's keys with the same digit.
    unsigned rank[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int digit = digit_of(key[i], pass);
        const unsigned same = lanes_with(digit);
        const int left = __popc(same & ((1u << lane) - 1));
        const unsigned before = counts[warp][digit];
        __syncwarp();
        if (left == 0)
            counts[warp][digit] = before + __popc(same);
        __syncwarp();
        rank[i] = before + left;
    }
    __syncthreads();

    // A thread a digit: how many in the tile, and how many in the warps before each warp.
    const int digit = threadIdx.x;
    unsigned count = 0;
    if (digit < DIGITS) {
        for (int w = 0; w < WARPS; w++) {
            const unsigned of_warp = counts[w][digit];
            counts[w][digit] = count;
            count += of_warp;
        }
        write_word(&told[static_cast<long long>(tile) * DIGITS + digit],
                   (tile == 0 ? Told<Word>::PREFIX : Told<Word>::COUNT) | count);
    }
    const unsigned begin = sum_before(count, sums);  // of this digit's keys, in the sorted tile
    if (digit < DIGITS)
        for (int w = 0; w < WARPS; w++)
            counts[w][digit] += begin;
    __syncthreads();

#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        sorted[counts[warp][digit_of(key[i], pass)] + rank[i]] = key[i];

    if (digit < DIGITS) {
        const Word before = look_back(told, tile, digit);
        if (tile > 0)
            write_word(&told[static_cast<long long>(tile) * DIGITS + digit],
                       Told<Word>::PREFIX | (before + count));
        shift[digit] = static_cast<long long>(places[pass * DIGITS + digit] + before) - begin;
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int place = i * THREADS + threadIdx.x;
        const unsigned moved = sorted[place];
        if (place < items)
            out[shift[digit_of(moved, pass)] + place] = moved;
    }
}
