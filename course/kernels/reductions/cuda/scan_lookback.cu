// The inclusive sum of an array in one pass: "decoupled look-back" (Merrill and Garland, 2016).
//
// Each block scans one tile. It publishes the tile's sum at once, and looks back at the words of
// the tiles before it: it adds up their sums until it meets one that knows its whole prefix. Then
// it publishes its own, so that those behind it need not look further.
//
// Why nobody waits for ever: a tile's number is drawn from a counter when its block already runs,
// so every tile that a block looks back at belongs to a block that runs or has ended. It publishes
// its sum without waiting for anybody.
#include "scan_tile.cuh"

enum : unsigned { NOTHING, SUM, PREFIX };  // what a tile's word tells

// The sum of all tiles before `tile`, by a whole warp: 32 words at a glance.
template <typename T>
__device__ T look_back(const Word* words, long long tile, int lane) {
    T prefix = 0;
    bool found = false;
    for (long long t = tile - 1 - lane; !found; t -= WARP) {
        Word word = pack(PREFIX, T(0));  // before the first tile
        if (t >= 0) {
            word = read_word(&words[t]);
            while (tag_of(word) == NOTHING) {
                pause();
                word = read_word(&words[t]);
            }
        }
        __syncwarp();
        const unsigned prefixes = __ballot_sync(EVERYONE, tag_of(word) == PREFIX);
        found = prefixes != 0;
        const int nearest = found ? __ffs(prefixes) - 1 : WARP - 1;
        prefix += warp_sum(lane <= nearest ? value_of<T>(word) : T(0));
    }
    return prefix;
}

// in, out: n elements, at addresses that are multiples of 16.
// state: zeros, a word for the counter and one for each tile.
template <typename T, int THREADS, int ROWS>
__global__ void __launch_bounds__(THREADS)
    scan_lookback(const T* in, T* out, long long n, Word* state) {
    using TileOf = Tile<T, THREADS, ROWS>;
    constexpr int WARPS = TileOf::WARPS;
    __shared__ unsigned drawn;
    __shared__ T sums[WARPS];
    __shared__ T start;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    Word* words = state + 1;

    if (threadIdx.x == 0)
        drawn = static_cast<unsigned>(atomicAdd(&state[0], 1ull));
    __syncthreads();
    const long long tile = drawn, first = tile * TileOf::ITEMS;
    const int items = n - first < TileOf::ITEMS ? static_cast<int>(n - first) : TileOf::ITEMS;

    TileOf mine;
    mine.load(in + first, items);
    const T piece = mine.scan_piece();
    if (lane == 0)
        sums[warp] = piece;
    __syncthreads();

    T before = 0;  // in this tile, before my warp's piece
    T all = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w == warp)
            before = all;
        all += sums[w];
    }
    if (warp == 0) {
        if (lane == 0)
            write_word(&words[tile], pack(tile == 0 ? PREFIX : SUM, all));
        const T prefix = look_back<T>(words, tile, lane);
        if (lane == 0) {
            write_word(&words[tile], pack(PREFIX, prefix + all));
            start = prefix;
        }
    }
    __syncthreads();
    mine.add(start + before);
    mine.store(out + first, items);
}
