// All-reduce by hand: every rank ends up with the sum of all ranks' numbers.
//
//     one_shot    everyone sends everything to everyone, each adds up; small messages
//     pull        everyone reads everything from everyone, each adds up; small messages
//     two_shot    rank r reads part r from everyone, adds up, writes the sum to everyone
//     push        the same in stores alone: parts are sent to part r's owner, sums come back
//     ring        parts go round: 2 (n - 1) steps of 1/n of the message to the next rank
//
// Each is a device function of one block, which is a channel: block b of a rank deals with the same
// part of the message as block b of every other rank, and waits for nobody else. All ranks must
// call with the same count, type, number of blocks and threads. Every rank gets the same bits:
// one_shot and pull add in the order of the ranks everywhere, in the others one rank forms a sum
// and sends it to all.
//
// Bytes that each rank sends for a message of S bytes: one_shot 2 (n - 1) S (half of it are flags),
// pull (n - 1) S; all others 2 (n - 1) / n S, the least that the busiest rank can send.
//
// A trip to a peer is long, so with short messages no thread waits for one peer before it has asked
// the next: see AT_ONCE.
#pragma once
#include "numbers.cuh"

// ---- barrier of a channel -----------------------------------------------------------------------

// Leave flag number `value` with all peers: what this block did before is visible to who sees it.
__device__ inline void leave_flags(const Peers& peers, int channel, unsigned value) {
    __syncthreads();
    int peer = threadIdx.x;
    if (peer < peers.ranks && peer != peers.rank)
        store_release(peers.flag_at(peer, channel), value);
}

__device__ inline void wait_for_flags(const Peers& peers, int channel, unsigned value) {
    int peer = threadIdx.x;
    if (peer < peers.ranks && peer != peers.rank)
        wait_for_flag(peers, peers.flag_of(peer, channel), value, peer);
    __syncthreads();
}

// ---- 16 bytes at a time -------------------------------------------------------------------------
// Read once, so not worth a place in the L1 cache.
__device__ inline uint4 load16(const void* from) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

__device__ inline void store16(void* to, uint4 v) {
    *reinterpret_cast<uint4*>(to) = v;
}

// The part of `count` things that number `i` of `n` gets: as even as can be.
struct Part {
    size_t first, end;

    __device__ Part(size_t count, int i, int n) {
        size_t each = (count + n - 1) / n;
        first = min(count, each * i);
        end = min(count, first + each);
    }
};

// ---- one shot -----------------------------------------------------------------------------------
constexpr size_t CHANNEL_BYTES = 16 << 10;  // of data, in a message of words

// Where `source`'s words of a channel's message lie in a rank's memory.
__device__ inline word* words_of(const Peers& peers, int in_memory_of, int channel,
                                 unsigned message, int source) {
    size_t place = size_t(message % 2) * CHANNELS + channel;
    size_t slot = place * peers.ranks + source;
    return reinterpret_cast<word*>(peers.base[in_memory_of] + peers.words +
                                   slot * 2 * CHANNEL_BYTES);
}

// The numbers from element `at` on that fill 8 bytes; zeros past the end.
template <class T>
__device__ inline uint2 load8(const T* from, size_t at, size_t count) {
    constexpr int each = 8 / sizeof(T);
    if (at + each <= count)
        return *reinterpret_cast<const uint2*>(from + at);
    uint2 v = make_uint2(0, 0);
    for (int e = 0; at + e < count; ++e)
        reinterpret_cast<T*>(&v)[e] = from[at + e];
    return v;
}

template <class T>
__device__ inline void store8(T* to, size_t at, size_t count, uint2 v) {
    constexpr int each = 8 / sizeof(T);
    if (at + each <= count) {
        *reinterpret_cast<uint2*>(to + at) = v;
        return;
    }
    for (int e = 0; at + e < count; ++e)
        to[at + e] = reinterpret_cast<T*>(&v)[e];
}

// A message's words have two places, used in turn. A rank can be at most one message ahead: to
// finish a message it needs the peer's words of that message, which the peer's kernel sends after
// it has read those of the message before.
template <class T>
__device__ void one_shot(const Peers& peers, T* out, const T* in, size_t count, int channel,
                         int channels) {
    constexpr int each = 8 / sizeof(T);
    Part part((count + each - 1) / each, channel, channels);
    unsigned message = peers.mine().messages[channel] + 1;
    for (size_t i = part.first + threadIdx.x; i < part.end; i += blockDim.x) {
        uint2 mine = load8(in, i * each, count);
        size_t at = (i - part.first) * 2;
        for (int k = 1; k < peers.ranks; ++k) {  // everyone begins with another peer
            int peer = peers.after(k);
            word* to = words_of(peers, peer, channel, message, peers.rank);
            send_words(to + at, mine, message);
        }
    }
    for (size_t i = part.first + threadIdx.x; i < part.end; i += blockDim.x) {
        Accumulator<T, 2> sum;
        uint2 arrived[MOST_RANKS];
        const word* first = words_of(peers, peers.rank, channel, message, 0);
        size_t at = (i - part.first) * 2;
        receive_from_all(peers, first + at, CHANNEL_BYTES / 4, message, arrived);
        uint2 mine = load8(in, i * each, count);
#pragma unroll
        for (int rank = 0; rank < MOST_RANKS; ++rank)
            if (rank < peers.ranks)
                sum.add(rank == peers.rank ? mine : arrived[rank]);
        store8(out, i * each, count, sum.two());
    }
    __syncthreads();
    if (threadIdx.x == 0)
        peers.mine().messages[channel] = message;
}

// ---- the last numbers of a message that 16 bytes do not divide ----------------------------------
// Few, so everyone reads them from everyone; `in` must be at the same place of every rank's memory.
template <class T>
__device__ inline T* on_rank(const Peers& peers, T* mine, int rank) {
    return reinterpret_cast<T*>(peers.base[rank] +
                                (reinterpret_cast<char*>(mine) - peers.base[peers.rank]));
}

template <class T>
__device__ inline const T* on_rank(const Peers& peers, const T* mine, int rank) {
    return on_rank(peers, const_cast<T*>(mine), rank);
}

// ---- reading several peers at once --------------------------------------------------------------
// How many peers a thread reads at once when it takes `unroll` vectors of each. Short messages have
// one vector a thread and want all trips at the same time; long ones have enough threads.
template <int unroll>
constexpr int AT_ONCE = 1;
template <>
constexpr int AT_ONCE<1> = MOST_RANKS - 1;
template <>
constexpr int AT_ONCE<2> = 2;

// Add `unroll` vectors of all peers to the sums. from(k, u): where vector u of peer k (from 1
// on, counted from this rank) lies, or null.
template <class T, int unroll, class From>
__device__ inline void add_peers(Accumulator<T, 4> (&sums)[unroll], int ranks, From from) {
    constexpr int group = AT_ONCE<unroll>;
    for (int first = 1; first < ranks; first += group) {
        uint4 v[group][unroll] = {};
#pragma unroll
        for (int g = 0; g < group; ++g)
#pragma unroll
            for (int u = 0; u < unroll; ++u) {
                const void* place = first + g < ranks ? from(first + g, u) : nullptr;
                if (place)
                    v[g][u] = load16(place);
            }
#pragma unroll
        for (int g = 0; g < group; ++g)
            if (first + g < ranks)
#pragma unroll
                for (int u = 0; u < unroll; ++u)
                    sums[u].add(v[g][u]);
    }
}

// ---- one shot, reading --------------------------------------------------------------------------
// Every thread holds one vector's sum while it waits for all to have read: so in place is allowed.
// count must fill whole 16 bytes, at most one vector a thread. `in` lies at the same place of every
// rank's memory, `out` anywhere.
template <class T>
__device__ void pull(const Peers& peers, T* out, const T* in, size_t count, int channel,
                     int channels) {
    constexpr int each = 16 / sizeof(T);
    unsigned left = peers.mine().left[channel];
    leave_flags(peers, channel, left + 1);  // my numbers are there
    wait_for_flags(peers, channel, left + 1);
    size_t i = size_t(channel) * blockDim.x + threadIdx.x;
    bool mine = i < count / each;
    uint4 v[MOST_RANKS];
#pragma unroll
    for (int rank = 0; rank < MOST_RANKS; ++rank)
        if (mine && rank < peers.ranks)
            v[rank] = load16(on_rank(peers, in, rank) + i * each);
    Accumulator<T, 4> sum;
#pragma unroll
    for (int rank = 0; rank < MOST_RANKS; ++rank)
        if (mine && rank < peers.ranks)
            sum.add(v[rank]);
    leave_flags(peers, channel, left + 2);  // I have read
    wait_for_flags(peers, channel, left + 2);
    if (mine)
        store16(out + i * each, sum.four());
    if (threadIdx.x == 0)
        peers.mine().left[channel] = left + 2;
}

// ---- two shots, reading -------------------------------------------------------------------------
// `in` and `out` lie at the same places of every rank's memory. In place is allowed: an element is
// read and written by one thread of one rank.
template <class T, int unroll>
__device__ void two_shot(const Peers& peers, T* out, const T* in, size_t count, int channel,
                         int channels) {
    constexpr int each = 16 / sizeof(T);
    unsigned left = peers.mine().left[channel];
    leave_flags(peers, channel, left + 1);  // my numbers are there
    wait_for_flags(peers, channel, left + 1);
    Part part(count / each, peers.rank, peers.ranks);
    size_t stride = size_t(channels) * blockDim.x;
    for (size_t first = part.first + channel * blockDim.x + threadIdx.x; first < part.end;
         first += stride * unroll) {
        Accumulator<T, 4> sums[unroll];
        uint4 mine[unroll] = {};
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            if (first + u * stride < part.end)
                mine[u] = load16(in + (first + u * stride) * each);
        add_peers(sums, peers.ranks, [&](int k, int u) -> const void* {
            const T* from = on_rank(peers, in, peers.after(k));
            size_t i = first + u * stride;
            return i < part.end ? from + i * each : nullptr;
        });
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            sums[u].add(mine[u]);
        for (int k = 0; k < peers.ranks; ++k) {
            T* to = on_rank(peers, out, peers.after(k));
#pragma unroll
            for (int u = 0; u < unroll; ++u)
                if (first + u * stride < part.end)
                    store16(to + (first + u * stride) * each, sums[u].four());
        }
    }
    size_t rest = count / each * each + threadIdx.x;  // numbers that do not fill 16 bytes
    if (channel == 0 && peers.rank == peers.ranks - 1 && rest < count) {
        float sum = 0;
        for (int rank = 0; rank < peers.ranks; ++rank)
            sum += float(on_rank(peers, in, rank)[rest]);
        for (int rank = 0; rank < peers.ranks; ++rank)
            on_rank(peers, out, rank)[rest] = T(sum);
    }
    leave_flags(peers, channel, left + 2);  // my sums are there
    wait_for_flags(peers, channel, left + 2);
    if (threadIdx.x == 0)
        peers.mine().left[channel] = left + 2;
}

// ---- two shots, writing -------------------------------------------------------------------------
// A tile is what a block sends before it leaves a flag: blockDim.x * unroll times 16 bytes.
// Tile t of rank r's part is the business of channel t % channels of all ranks.

// Where `source`'s numbers for element `at` of the owner's part lie in the owner's scratch memory.
template <class T>
__device__ inline T* scratch_of(const Peers& peers, int owner, int source, size_t part_bytes) {
    int slot = source < owner ? source : source - 1;  // nobody sends to himself
    return reinterpret_cast<T*>(peers.base[owner] + peers.scratch + slot * part_bytes);
}

__host__ __device__ inline size_t part_bytes(size_t count, size_t size, int ranks) {
    size_t vectors = (count * size + 15) / 16;
    return (vectors + ranks - 1) / ranks * 16;
}

// The sums of one tile of my part: from my own numbers and what lies in scratch, to everyone.
template <class T, int unroll>
__device__ inline void finish_tile(const Peers& peers, T* out, const T* in, const Part& part,
                                   size_t tile, size_t bytes) {
    constexpr int each = 16 / sizeof(T);
    size_t first = tile * blockDim.x * unroll + threadIdx.x;
    Accumulator<T, 4> sums[unroll];
    uint4 mine[unroll] = {};
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
        size_t i = part.first + first + u * blockDim.x;
        if (i < part.end)
            mine[u] = load16(in + i * each);
    }
    add_peers(sums, peers.ranks, [&](int k, int u) -> const void* {
        const T* from = scratch_of<T>(peers, peers.rank, peers.after(k), bytes);
        size_t i = first + u * blockDim.x;
        return part.first + i < part.end ? from + i * each : nullptr;
    });
#pragma unroll
    for (int u = 0; u < unroll; ++u)
        sums[u].add(mine[u]);
    for (int k = 0; k < peers.ranks; ++k) {
        T* to = on_rank(peers, out, peers.after(k)) + part.first * each;
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            size_t i = first + u * blockDim.x;
            if (part.first + i < part.end)
                store16(to + i * each, sums[u].four());
        }
    }
}

// count must fill whole 16 bytes. `out` lies at the same place of every rank's memory; `in` may be
// anywhere. In place is allowed: the sum of a tile is sent to a peer only when the peer's numbers
// of that tile are here.
template <class T, int unroll, int lag>
__device__ void push(const Peers& peers, T* out, const T* in, size_t count, int channel,
                     int channels) {
    constexpr int each = 16 / sizeof(T);
    size_t vectors = count / each;
    size_t bytes = part_bytes(count, sizeof(T), peers.ranks);
    size_t per_tile = size_t(blockDim.x) * unroll;
    size_t tiles = (bytes / 16 + per_tile - 1) / per_tile;
    int mine = tiles > size_t(channel) ? int((tiles - channel + channels - 1) / channels) : 0;
    unsigned left = peers.mine().left[channel];
    Part part(vectors, peers.rank, peers.ranks);
    for (int k = 0; k < mine + lag; ++k) {
        if (k < mine) {  // send: tile k of every peer's part
            size_t first = (channel + size_t(k) * channels) * per_tile + threadIdx.x;
            for (int turn = 1; turn < peers.ranks; ++turn) {
                int owner = peers.after(turn);
                Part theirs(vectors, owner, peers.ranks);
                T* to = scratch_of<T>(peers, owner, peers.rank, bytes);
                uint4 v[unroll];
#pragma unroll
                for (int u = 0; u < unroll; ++u) {
                    size_t i = theirs.first + first + u * blockDim.x;
                    if (i < theirs.end)
                        v[u] = load16(in + i * each);
                }
#pragma unroll
                for (int u = 0; u < unroll; ++u) {
                    size_t i = first + u * blockDim.x;
                    if (theirs.first + i < theirs.end)
                        store16(to + i * each, v[u]);
                }
            }
            leave_flags(peers, channel, left + k + 1);
        }
        if (k >= lag) {  // add up: a tile of my part, sent a while ago
            wait_for_flags(peers, channel, left + k - lag + 1);
            finish_tile<T, unroll>(peers, out, in, part, channel + size_t(k - lag) * channels,
                                   bytes);
        }
    }
    leave_flags(peers, channel, left + mine + 1);
    wait_for_flags(peers, channel, left + mine + 1);
    if (threadIdx.x == 0)
        peers.mine().left[channel] = left + mine + 1;
}

// ---- ring ---------------------------------------------------------------------------------------
// Step s < n: rank r sends to rank r + 1 what it has of part r - s, having added its own numbers;
// after step n - 1 the sum of part r + 1 is complete. Steps n ... 2 n - 3 hand the sums round.
// Needs count to fill whole 16 bytes; `out` at the same place of every rank's memory.
template <class T, int unroll>
__device__ void ring(const Peers& peers, T* out, const T* in, size_t count, int channel,
                     int channels) {
    constexpr int each = 16 / sizeof(T);
    int n = peers.ranks;
    int next = peers.after(1);
    int last = peers.after(n - 1);
    size_t bytes = part_bytes(count, sizeof(T), n);
    unsigned left = peers.mine().left[channel];
    T* next_out = on_rank(peers, out, next);
    for (int step = 0; step < 2 * n - 2; ++step) {
        int number = peers.after(2 * n - step);
        Part part(count / each, number, n);
        Part slice(part.end - part.first, channel, channels);
        bool first_step = step == 0;
        bool adds = step > 0 && step < n;
        bool whole = step >= n - 1;
        if (!first_step) {
            if (threadIdx.x == 0)
                wait_for_flag(peers, peers.flag_of(last, channel), left + step, last);
            __syncthreads();
        }
        const char* arrived = peers.base[peers.rank] + peers.scratch + (step - 1) * bytes;
        char* forward = peers.base[next] + peers.scratch + step * bytes;
        for (size_t first = slice.first + threadIdx.x; first < slice.end;
             first += size_t(blockDim.x) * unroll) {
            Accumulator<T, 4> sums[unroll];
#pragma unroll
            for (int u = 0; u < unroll; ++u) {
                size_t i = first + u * blockDim.x;
                if (i >= slice.end)
                    continue;
                if (adds)
                    sums[u].add(load16(arrived + i * 16));
                const T* own = step < n ? in : out;
                sums[u].add(load16(own + (part.first + i) * each));
            }
#pragma unroll
            for (int u = 0; u < unroll; ++u) {
                size_t i = first + u * blockDim.x;
                if (i >= slice.end)
                    continue;
                uint4 v = sums[u].four();
                if (step == n - 1)
                    store16(out + (part.first + i) * each, v);
                char* to = forward + i * 16;
                if (whole)
                    to = reinterpret_cast<char*>(next_out + (part.first + i) * each);
                store16(to, v);
            }
        }
        __syncthreads();
        if (threadIdx.x == 0)
            store_release(peers.flag_at(next, channel), left + step + 1);
    }
    if (threadIdx.x == 0)
        wait_for_flag(peers, peers.flag_of(last, channel), left + 2 * n - 2, last);
    // The next message may use the scratch memory only when everyone is done with it.
    leave_flags(peers, channel, left + 2 * n - 1);
    wait_for_flags(peers, channel, left + 2 * n - 1);
    if (threadIdx.x == 0)
        peers.mine().left[channel] = left + 2 * n - 1;
}
