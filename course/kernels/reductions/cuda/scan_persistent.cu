// The inclusive sum of an array in one pass, by blocks that stay.
//
// As many blocks as fit on the GPU at once share the tiles in turns: a block's next tile is
// gridDim.x further on. So a block needs no chain of prefixes: it knows the prefix of its own last
// tile, and adds the sums of the gridDim.x tiles from there to the new one. While it waits for
// them, its next tile is already on the way.
//
// The order of every addition is fixed: the same input gives the same bits in every run.
#include "scan_tile.cuh"

// The sum of the tiles first..end-1, which may still have to be published, by a whole warp.
template <typename T>
__device__ typename Long<T>::type gather(const Word* sums, long long first, long long end,
                                         unsigned tag, int lane) {
    constexpr int AT_ONCE = 4;  // words a lane asks for before it waits for the first of them
    typename Long<T>::type sum = 0;
    for (long long t = first + lane; t < end; t += AT_ONCE * WARP) {
        Word word[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            word[i] = t + i * WARP < end ? read_word(&sums[t + i * WARP]) : pack(tag, T(0));
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            while (tag_of(word[i]) != tag) {
                pause();
                word[i] = read_word(&sums[t + i * WARP]);
            }
            sum += value_of<T>(word[i]);
        }
    }
    __syncwarp();
    return warp_sum(sum);
}

// in, out: n elements, at addresses that are multiples of 16.
// state: zeros before the first launch; each launch leaves it ready for the next. state[0] counts
// the launches, which makes the tag of this one; state[1] counts the blocks that have ended; then
// a word for each tile.
template <typename T, int THREADS, int ROWS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    scan_persistent(const T* in, T* out, long long n, Word* state) {
    using TileOf = Tile<T, THREADS, ROWS>;
    using LongSum = typename Long<T>::type;
    constexpr int WARPS = TileOf::WARPS, ITEMS = TileOf::ITEMS;
    __shared__ T sums[WARPS];
    __shared__ T start;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const unsigned tag = static_cast<unsigned>(read_word(&state[0])) + 1;
    Word* words = state + 2;
    const long long tiles = (n + ITEMS - 1) / ITEMS;

    LongSum prefix = 0;  // of my tile, in warp 0
    long long last = 0;  // the tile up to which the prefix goes
    TileOf next;
    long long tile = blockIdx.x;
    if (tile < tiles)
        next.load(in + tile * ITEMS, n - tile * ITEMS < ITEMS ? int(n - tile * ITEMS) : ITEMS);

    for (; tile < tiles; tile += gridDim.x) {
        TileOf mine = next;
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
        if (threadIdx.x == 0)
            write_word(&words[tile], pack(tag, all));

        const long long then = tile + gridDim.x;
        if (then < tiles)
            next.load(in + then * ITEMS, n - then * ITEMS < ITEMS ? int(n - then * ITEMS) : ITEMS);

        if (warp == 0) {
            prefix += gather<T>(words, last, tile, tag, lane);
            last = tile;
            if (lane == 0)
                start = static_cast<T>(prefix);
        }
        __syncthreads();
        mine.add(start + before);
        mine.store(out + tile * ITEMS, n - tile * ITEMS < ITEMS ? int(n - tile * ITEMS) : ITEMS);
    }

    __syncthreads();
    if (threadIdx.x == 0) {
        const Word before_me = atomicAdd(&state[1], 1ull);
        if (before_me == gridDim.x - 1) {  // the last block: nobody reads the state any more
            state[1] = 0;
            state[0] = tag;
        }
    }
}
