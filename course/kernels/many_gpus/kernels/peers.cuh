// What a kernel knows of the other GPUs: where their memory is mapped, how to leave a flag there,
// how to wait for one without ever hanging.
//
// Every rank has one piece of memory, laid out alike on all ranks and mapped into the address space
// of each: so "the same place on rank p" is peers.base[p] + offset. A rank writes into the others'
// memory and waits on its own, because a poll of its own memory costs no trip over the link.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int MOST_RANKS = 8;
constexpr int CHANNELS =
    256;  // blocks of an all-reduce: block b of a rank talks to the others' block b

// Why a wait was given up.
struct Failure {
    unsigned code;  // 0: none. Else 1 + the kind of wait, see Wait
    unsigned peer;  // whose sign did not come
    unsigned block;  // of the block that waited
    unsigned value;  // what it waited for
};

enum Wait { WORDS, FLAG };

// What every rank's memory begins with. A channel's counters are read and raised by its block
// alone, so that a kernel in a CUDA graph, whose arguments never change, still gives each call new
// numbers.
struct Control {
    Failure failure;
    unsigned messages[CHANNELS];  // own: messages of words so far
    unsigned left[CHANNELS];  // own: flags that this channel has left with each peer
    unsigned flags[CHANNELS][MOST_RANKS];  // written by the peers
};

struct Peers {  // passed to kernels by value
    int rank;
    int ranks;
    unsigned long long patience;  // nanoseconds that a wait may last
    size_t words, scratch;  // offsets: messages of words; a message's parts from the peers
    size_t scratch_bytes;
    char* base[MOST_RANKS];  // base[rank] is this GPU's own memory

    __device__ Control& control(int of) const {
        return *reinterpret_cast<Control*>(base[of]);
    }
    __device__ Control& mine() const {
        return control(rank);
    }
    // The rank that comes k places after this one.
    __device__ int after(int k) const {
        return (rank + k) % ranks;
    }
    // Of a channel: this rank's flag in a peer's memory, and the peer's flag here.
    __device__ unsigned* flag_at(int peer, int channel) const {
        return &control(peer).flags[channel][rank];
    }
    __device__ unsigned* flag_of(int peer, int channel) const {
        return &mine().flags[channel][peer];
    }
};

// ---- loads and stores that other GPUs see -------------------------------------------------------
// Source of what they promise: PTX ISA, "Memory consistency model".

typedef unsigned long long
    word;  // 4 bytes of data below, 4 bytes of flag above: they arrive together

// Two words with one instruction. Each is single-copy atomic: whoever sees the flag sees its data.
__device__ inline void store_words(word* to, word a, word b) {
    asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(a), "l"(b)
                 : "memory");
}

__device__ inline void load_words(word& a, word& b, const word* from) {
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                 : "=l"(a), "=l"(b)
                 : "l"(from)
                 : "memory");
}

// A flag: all that this thread wrote or knew of before is visible to whoever sees the flag.
__device__ inline void store_release(unsigned* to, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

__device__ inline unsigned load_acquire(const unsigned* from) {
    unsigned value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__device__ inline unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

// ---- waiting ------------------------------------------------------------------------------------

// Counts the polls of one wait, and says when it has lasted too long. It looks at the clock, and at
// whether another thread has given up, only once in so many polls.
struct Watch {
    static constexpr unsigned POLLS = 1024;
    unsigned polls = 0;
    unsigned long long begun = 0;

    // True: give up. The reason then stands in the rank's memory, unless an earlier one does.
    __device__ bool over(const Peers& peers, Wait kind, int peer, unsigned value) {
#ifdef __CUDA_CPU__
        __nanosleep(0);  // lets the other threads run, and so the other ranks
#endif
        if (++polls % POLLS)
            return false;
        unsigned long long now = nanoseconds();
        if (!begun)
            begun = now;
        Failure* failure = &peers.mine().failure;
        if (load_acquire(&failure->code))
            return true;
        if (now - begun < peers.patience)
            return false;
        if (atomicCAS(&failure->code, 0u, 1u + kind) == 0) {
            failure->peer = peer;
            failure->block = blockIdx.x;
            failure->value = value;
        }
        return true;
    }
};

// Wait until a counter that a peer raises has reached a value; it may wrap around.
__device__ inline void wait_for_flag(const Peers& peers, const unsigned* flag, unsigned value,
                                     int peer) {
    Watch watch;
    while (int(load_acquire(flag) - value) < 0)
        if (watch.over(peers, FLAG, peer, value))
            return;
}

// ---- data with its flag in the same word --------------------------------------------------------
// 8 bytes of data travel as 16: no fence and no second trip for a flag ("LL", low latency, in
// NCCL).

__device__ inline void send_words(word* to, uint2 data, unsigned flag) {
    store_words(to, data.x | word(flag) << 32, data.y | word(flag) << 32);
}

__device__ inline uint2 receive_words(const Peers& peers, const word* from, unsigned flag,
                                      int peer) {
    word a, b;
    Watch watch;
    load_words(a, b, from);
    while (unsigned(a >> 32) != flag || unsigned(b >> 32) != flag) {
        if (watch.over(peers, WORDS, peer, flag))
            break;
        load_words(a, b, from);
    }
    return make_uint2(unsigned(a), unsigned(b));
}

// The same from all peers: `from`: where rank 0's words lie, the next rank's `stride` words later.
// All loads are on their way before the first is waited for.
__device__ inline void receive_from_all(const Peers& peers, const word* from, size_t stride,
                                        unsigned flag, uint2 (&arrived)[MOST_RANKS]) {
    word a[MOST_RANKS], b[MOST_RANKS];
#pragma unroll
    for (int rank = 0; rank < MOST_RANKS; ++rank)
        if (rank < peers.ranks && rank != peers.rank)
            load_words(a[rank], b[rank], from + rank * stride);
#pragma unroll
    for (int rank = 0; rank < MOST_RANKS; ++rank) {
        if (rank >= peers.ranks || rank == peers.rank)
            continue;
        Watch watch;
        while (unsigned(a[rank] >> 32) != flag || unsigned(b[rank] >> 32) != flag) {
            if (watch.over(peers, WORDS, rank, flag))
                break;
            load_words(a[rank], b[rank], from + rank * stride);
        }
        arrived[rank] = make_uint2(unsigned(a[rank]), unsigned(b[rank]));
    }
}
