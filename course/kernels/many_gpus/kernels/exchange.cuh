// Sums over the ranks in the middle of a kernel: what the trainer needs of an all-reduce, without a
// launch of its own. The words of peers.cuh, one shot, in the order of the ranks.
#pragma once
#include "peers.cuh"

// A place for one kind of exchange. Every block of the kernel has a counter, every thread that
// takes part a slot of 16 bytes; both of a rank's messages that may be under way have their own
// words.
struct Site {
    size_t counters;  // offset of unsigned [blocks] in each rank's memory
    size_t words;  // offset of word [2][ranks][slots][4]
    int slots;  // a multiple of 32
};

// Where a slot's first two words lie; the other two follow 32 slots' later, so that a warp's stores
// are whole lines.
__device__ inline word* slot_words(const Peers& peers, const Site& site, int in_memory_of,
                                   unsigned message, int source, int slot) {
    word* words = reinterpret_cast<word*>(peers.base[in_memory_of] + site.words);
    size_t first = (size_t(message % 2) * peers.ranks + source) * site.slots;
    return words + (first + slot / 32 * 32) * 4 + slot % 32 * 2;
}

__device__ inline void send_slot_to(const Peers& peers, const Site& site, unsigned message,
                                    int slot, uint4 data, int peer) {
    word* to = slot_words(peers, site, peer, message, peers.rank, slot);
    send_words(to, make_uint2(data.x, data.y), message);
    send_words(to + 64, make_uint2(data.z, data.w), message);
}

__device__ inline void send_slot(const Peers& peers, const Site& site, unsigned message, int slot,
                                 uint4 data) {
    for (int k = 1; k < peers.ranks; ++k)  // everyone begins with another peer
        send_slot_to(peers, site, message, slot, data, peers.after(k));
}

__device__ inline uint4 receive_slot(const Peers& peers, const Site& site, unsigned message,
                                     int rank, int slot) {
    const word* from = slot_words(peers, site, peers.rank, message, rank, slot);
    uint2 a = receive_words(peers, from, message, rank);
    uint2 b = receive_words(peers, from + 64, message, rank);
    return make_uint4(a.x, a.y, b.x, b.y);
}

__device__ inline void add(float4& sum, uint4 bits) {
    sum.x += __uint_as_float(bits.x);
    sum.y += __uint_as_float(bits.y);
    sum.z += __uint_as_float(bits.z);
    sum.w += __uint_as_float(bits.w);
}

__device__ inline void add(double2& sum, uint4 bits) {
    sum.x += *reinterpret_cast<double*>(&bits.x);
    sum.y += *reinterpret_cast<double*>(&bits.z);
}

template <class Four>
union Bits {  // four numbers, or two of double length, as they travel
    Four value;
    uint4 bits;
    __device__ Bits() {}
};

// The ranks' numbers of a slot, added in the order of the ranks.
template <class Four>
__device__ inline Four add_up(const Peers& peers, const Site& site, unsigned message, int slot,
                              uint4 own) {
    Four sum = {};
    for (int rank = 0; rank < peers.ranks; ++rank)
        add(sum, rank == peers.rank ? own : receive_slot(peers, site, message, rank, slot));
    return sum;
}

// The sum of the ranks' `mine` (float4 or double2): the same bits on every rank.
template <class Four>
__device__ inline Four sum_over_ranks(const Peers& peers, const Site& site, unsigned message,
                                      int slot, Four mine) {
    Bits<Four> own;
    own.value = mine;
    send_slot(peers, site, message, slot, own.bits);
    return add_up<Four>(peers, site, message, slot, own.bits);
}

// The same in two shots: a trip more, and with more than two ranks fewer bytes. A slot's numbers go
// to its owner, who adds them up and sends the sum to all; a warp's 32 slots have the same owner.
template <class Four>
__device__ inline Four sum_in_two_shots(const Peers& peers, const Site& site, unsigned message,
                                        int slot, Four mine) {
    int owner = slot / 32 % peers.ranks;
    Bits<Four> own;
    own.value = mine;
    if (owner != peers.rank)
        send_slot_to(peers, site, message, slot, own.bits, owner);
    if (owner == peers.rank) {
        own.value = add_up<Four>(peers, site, message, slot, own.bits);
        send_slot(peers, site, message, slot, own.bits);
    }
    if (owner != peers.rank)
        own.bits = receive_slot(peers, site, message, owner, slot);
    return own.value;
}

// The number of this block's next message, and the note that it has been used.
__device__ inline unsigned next_message(const Peers& peers, const Site& site, int block) {
    return reinterpret_cast<unsigned*>(peers.base[peers.rank] + site.counters)[block] + 1;
}

__device__ inline void message_done(const Peers& peers, const Site& site, int block,
                                    unsigned message) {
    __syncthreads();  // everyone has read the counter
    if (threadIdx.x == 0)
        reinterpret_cast<unsigned*>(peers.base[peers.rank] + site.counters)[block] = message;
}
