// The inclusive sum of an array in one pass, nearly as fast as a copy (compute capability 9.0 on).
//
// One block on each SM. Its tiles are blockIdx.x, blockIdx.x + gridDim.x, ...; they move through a
// ring of stages in shared memory. Each warp has one job and waits only for what that job needs:
//
//   mover       loads tiles into the ring, stores finished ones, both by the copy engine
//   scanners    add up a tile (each warp its part) and, `LAG` tiles later, scan it in place
//   publisher   adds the warps' sums and tells the tile's sum to the other blocks
//   gatherer    adds the sums of the gridDim.x tiles before this one to what it knew of its last
//               tile: that is where each warp's part begins
//
// So a tile waits for its prefix while others are loaded, added up and stored. Every block must be
// on the GPU at once, because each waits for all others: the grid is at most one block an SM.
// The order of every addition is fixed: the same input gives the same bits in every run.
#include "bulk_copy.cuh"
#include "scan_words.cuh"

template <typename T, int WARPS, int TILE, int STAGES>
struct Ring {
    __device__ T* tile(int k) {
        return tiles + (k % STAGES) * TILE;
    }

    T* tiles;  // [STAGES][TILE], dynamic shared memory
    Barrier loaded[STAGES];  // the tile is in its stage
    Barrier added[STAGES];  // sums[stage] is complete
    Barrier known[STAGES];  // start[stage] is complete
    Barrier scanned[STAGES];  // the stage holds the result
    T sums[STAGES][WARPS];  // of each warp's part of the tile
    T start[STAGES][WARPS];  // the sum of all that lies before each warp's part
};

// How the work is shared out: a block's k-th tile.
template <int TILE>
struct Share {
    long long n;

    __device__ long long tile(int k) const {
        return blockIdx.x + static_cast<long long>(k) * gridDim.x;
    }
    __device__ int tiles() const {
        const long long all = (n + TILE - 1) / TILE;
        return static_cast<int>((all - blockIdx.x + gridDim.x - 1) / gridDim.x);
    }
    __device__ int items(int k) const {
        const long long left = n - tile(k) * TILE;
        return static_cast<int>(left < TILE ? left : TILE);
    }
};

// ---- the mover -----------------------------------------------------------------------------

// A whole warp calls this. What no copy engine can move (the last 1 to 3 elements) goes by hand;
// the rest of the last tile becomes zeros, so that nobody else needs to ask where the end is.
template <typename T, int WARPS, int TILE, int STAGES>
__device__ void load(Ring<T, WARPS, TILE, STAGES>& ring, Share<TILE> share, const T* in, int k,
                     int lane, unsigned long long policy) {
    T* tile = ring.tile(k);
    const T* from = in + share.tile(k) * TILE;
    const int items = share.items(k), in_bulk = items & ~3;
    for (int i = in_bulk + lane; i < TILE; i += WARP)
        tile[i] = i < items ? from[i] : T(0);
    __syncwarp();
    if (lane == 0) {
        Barrier* loaded = &ring.loaded[k % STAGES];
        arrive_and_expect(loaded, in_bulk * sizeof(T));
        if (in_bulk > 0)
            bulk_load(tile, from, in_bulk * sizeof(T), loaded, policy);
    }
}

template <typename T, int WARPS, int TILE, int STAGES>
__device__ void store(Ring<T, WARPS, TILE, STAGES>& ring, Share<TILE> share, T* out, int k,
                      int lane, unsigned long long policy) {
    const T* tile = ring.tile(k);
    T* to = out + share.tile(k) * TILE;
    const int items = share.items(k), in_bulk = items & ~3;
    if (in_bulk + lane < items)
        to[in_bulk + lane] = tile[in_bulk + lane];
    if (lane == 0) {
        if (in_bulk > 0)
            bulk_store(to, tile, in_bulk * sizeof(T), policy);
        end_group_of_stores();
    }
}

template <typename T, int WARPS, int TILE, int STAGES>
__device__ void move(Ring<T, WARPS, TILE, STAGES>& ring, Share<TILE> share, const T* in, T* out,
                     int lane) {
    const unsigned long long policy = used_once();
    const int tiles = share.tiles();
    for (int k = 0; k < STAGES && k < tiles; k++)
        load(ring, share, in, k, lane, policy);
    for (int k = 0; k < tiles; k++) {
        wait_for(&ring.scanned[k % STAGES], k / STAGES);
        store(ring, share, out, k, lane, policy);
        if (k + STAGES < tiles) {
            wait_until_stores_have_read<0>();  // lane 0's stores: the others have none
            __syncwarp();
            load(ring, share, in, k + STAGES, lane, policy);
        }
    }
    wait_for_stores();
}

// ---- the scanners --------------------------------------------------------------------------

template <typename T, int WARPS, int TILE, int STAGES>
__device__ void add_up(Ring<T, WARPS, TILE, STAGES>& ring, int k, int warp, int lane) {
    constexpr int FOURS = TILE / WARPS / 4;
    const Four<T>* part = reinterpret_cast<Four<T>*>(ring.tile(k)) + warp * FOURS;
    T sum = 0;
#pragma unroll 4
    for (int i = lane; i < FOURS; i += WARP) {
        const Four<T> four = part[i];
        sum += (four.x + four.y) + (four.z + four.w);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        ring.sums[k % STAGES][warp] = sum;
        arrive(&ring.added[k % STAGES]);
    }
}

template <typename T, int WARPS, int TILE, int STAGES>
__device__ void scan(Ring<T, WARPS, TILE, STAGES>& ring, int k, int warp, int lane) {
    constexpr int FOURS = TILE / WARPS / 4;
    Four<T>* part = reinterpret_cast<Four<T>*>(ring.tile(k)) + warp * FOURS;
    T before = ring.start[k % STAGES][warp];
#pragma unroll 4
    for (int i = lane; i < FOURS; i += WARP) {
        Four<T> four = part[i];
        four.y += four.x;
        four.z += four.y;
        four.w += four.z;
        const T through = warp_scan(four.w, lane);  // the sum from lane 0 to the end of mine
        T left = __shfl_up_sync(EVERYONE, through, 1);
        left = lane > 0 ? before + left : before;
        four.x += left;
        four.y += left;
        four.z += left;
        four.w += left;
        part[i] = four;
        before += __shfl_sync(EVERYONE, through, WARP - 1);
    }
    shared_memory_to_copy_engine();
    __syncwarp();
    if (lane == 0)
        arrive(&ring.scanned[k % STAGES]);
}

template <int LAG, typename T, int WARPS, int TILE, int STAGES>
__device__ void add_up_and_scan(Ring<T, WARPS, TILE, STAGES>& ring, int tiles, int warp, int lane) {
    // A stage is used again when the tile after the one that it held is known, so that by then
    // the publisher has seen the stage's sums.
    static_assert(LAG + 2 <= STAGES, "the ring is too short for this lag");
    for (int k = 0; k < tiles + LAG; k++) {
        if (k < tiles) {
            wait_for(&ring.loaded[k % STAGES], k / STAGES);
            add_up(ring, k, warp, lane);
        }
        const int old = k - LAG;
        if (old >= 0) {
            wait_for(&ring.known[old % STAGES], old / STAGES);
            scan(ring, old, warp, lane);
        }
    }
}

// ---- publisher and gatherer ----------------------------------------------------------------

template <typename T, int WARPS, int TILE, int STAGES>
__device__ void publish(Ring<T, WARPS, TILE, STAGES>& ring, Share<TILE> share, Word* sums,
                        unsigned tag, int lane) {
    const int tiles = share.tiles();
    for (int k = 0; k < tiles; k++) {
        wait_for(&ring.added[k % STAGES], k / STAGES);
        const T sum = warp_sum(lane < WARPS ? ring.sums[k % STAGES][lane] : T(0));
        if (lane == 0)
            write_word(&sums[share.tile(k)], pack(tag, sum));
    }
}

// The sum of the tiles first..end-1, which may still have to be published, by a whole warp.
template <typename T>
__device__ typename Long<T>::type gather(const Word* sums, long long first, long long end,
                                         unsigned tag, int lane) {
    constexpr int AT_ONCE = 5;  // words a lane asks for before it waits: 160 tiles, for 132 blocks
    typename Long<T>::type sum = 0;
    for (long long t = first + lane; t < end; t += AT_ONCE * WARP) {
        Word word[AT_ONCE];
        bool all = false;
        while (!all) {
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                word[i] = t + i * WARP < end ? read_word(&sums[t + i * WARP]) : pack(tag, T(0));
            all = true;
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                all = all && tag_of(word[i]) == tag;
            if (!all)
                pause();
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            sum += value_of<T>(word[i]);
    }
    __syncwarp();
    return warp_sum(sum);
}

template <typename T, int WARPS, int TILE, int STAGES>
__device__ void gather_all(Ring<T, WARPS, TILE, STAGES>& ring, Share<TILE> share, const Word* sums,
                           unsigned tag, int lane) {
    using LongSum = typename Long<T>::type;
    const int tiles = share.tiles();
    LongSum prefix = 0;  // of my tile: the sum of all before it
    for (int k = 0; k < tiles; k++) {
        const long long tile = share.tile(k);
        const long long last = k > 0 ? tile - gridDim.x : 0;
        prefix += gather<T>(sums, last, tile, tag, lane);
        wait_for(&ring.added[k % STAGES], k / STAGES);
        const LongSum sum = lane < WARPS ? ring.sums[k % STAGES][lane] : T(0);
        const LongSum through = warp_scan(sum, lane);
        LongSum left = __shfl_up_sync(EVERYONE, through, 1);
        left = lane > 0 ? left : 0;
        if (lane < WARPS)
            ring.start[k % STAGES][lane] = static_cast<T>(prefix + left);
        __syncwarp();
        if (lane == 0)
            arrive(&ring.known[k % STAGES]);
    }
}

// ---- the kernel ----------------------------------------------------------------------------

// in, out: n elements, at addresses that are multiples of 16.
// state: zeros before the first launch; each launch leaves it ready for the next. state[0] counts
// the launches, which makes the tag of this one; state[1] counts the blocks that have ended; then
// a word for each tile.
template <typename T, int WARPS, int TILE, int STAGES, int LAG>
__global__ void __launch_bounds__((WARPS + 3) * 32, 1)
    scan_ring(const T* in, T* out, long long n, Word* state) {
    static_assert(TILE % (WARPS * WARP * 4) == 0, "each warp takes its part in rows of 128");
    static_assert(WARPS <= WARP, "one lane a warp adds up the warps' sums");
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ Ring<T, WARPS, TILE, STAGES> ring;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const Share<TILE> share{n};
    const unsigned tag = static_cast<unsigned>(read_word(&state[0])) + 1;
    Word* sums = state + 2;

    if (threadIdx.x == 0) {
        ring.tiles = reinterpret_cast<T*>(memory);
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(&ring.loaded[stage], 1);
            barrier_init(&ring.added[stage], WARPS);
            barrier_init(&ring.known[stage], 1);
            barrier_init(&ring.scanned[stage], WARPS);
        }
        shared_memory_to_copy_engine();
    }
    __syncthreads();

    if (warp < WARPS)
        add_up_and_scan<LAG>(ring, share.tiles(), warp, lane);
    else if (warp == WARPS)
        move(ring, share, in, out, lane);
    else if (warp == WARPS + 1)
        publish(ring, share, sums, tag, lane);
    else
        gather_all(ring, share, sums, tag, lane);

    __syncthreads();
    if (threadIdx.x == 0) {
        const Word before_me = atomicAdd(&state[1], 1ull);
        if (before_me == gridDim.x - 1) {  // the last block: nobody reads the state any more
            state[1] = 0;
            state[0] = tag;
        }
    }
}
