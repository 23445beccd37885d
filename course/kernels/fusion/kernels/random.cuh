// Random numbers without a state: number i of a seed is a function of both, so the backward pass
// computes the forward pass's dropout again instead of reading it.
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011 (Philox4x32-7: with
// seven rounds it passes all of their tests).
#pragma once

constexpr unsigned PHILOX_M0 = 0xD2511F53, PHILOX_M1 = 0xCD9E8D57;
constexpr unsigned PHILOX_W0 = 0x9E3779B9, PHILOX_W1 = 0xBB67AE85;
constexpr int PHILOX_ROUNDS = 7;

// 128 random bits.
__device__ inline uint4 philox(unsigned long long counter, unsigned long long seed) {
    uint4 c = make_uint4((unsigned)counter, (unsigned)(counter >> 32), 0, 0);
    unsigned key0 = (unsigned)seed;
    unsigned key1 = (unsigned)(seed >> 32);
#pragma unroll
    for (int round = 0; round < PHILOX_ROUNDS; ++round) {
        unsigned high0 = __umulhi(PHILOX_M0, c.x);
        unsigned high1 = __umulhi(PHILOX_M1, c.z);
        c = make_uint4(high1 ^ c.y ^ key0, PHILOX_M1 * c.z, high0 ^ c.w ^ key1, PHILOX_M0 * c.x);
        key0 += PHILOX_W0;
        key1 += PHILOX_W1;
    }
    return c;
}
