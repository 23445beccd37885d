// cuRAND's device interface on the CPU: XORWOW, Philox4x32-10 and Sobol's numbers of 32 bits.
//
// curand(), curand4() and the uniform functions give the same bits as NVIDIA's library for the same
// seed, sequence and offset (checked against its header). Normal and log-normal numbers come from
// the same bits by the same Box-Muller formula and differ by a few units in the last place, because
// the GPU's fast sine is another. Poisson numbers are the same, but where such a difference decides
// between two neighbours (curand/poisson.h). Sources:
// G. Marsaglia, "Xorshift RNGs" (2003); J. Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3" (2011); the cuRAND guide, "Device API", for seeding, 2^67 numbers a sequence and the order
// of the outputs.
#pragma once
#include <type_traits>
#include "curand/poisson.h"
#include "macros_aside.inc"

// Generators that are not offered: a variable of such a type does not compile, and the message
// names the reason.
typedef struct cpu_engine_offers_XORWOW_and_Philox_but_not_MRG32k3a curandStateMRG32k3a_t,
    curandStateMRG32k3a;
typedef struct cpu_engine_offers_XORWOW_and_Philox_but_not_MTGP32 curandStateMtgp32_t,
    curandStateMtgp32;
typedef struct cpu_engine_offers_XORWOW_and_Philox_but_not_Sobol64 curandStateSobol64_t,
    curandStateSobol64;
typedef struct cpu_engine_offers_XORWOW_and_Philox_but_not_scrambled_Sobol64
    curandStateScrambledSobol64_t;

struct curandStateXORWOW {
    unsigned d, v[5];
    bool has_normal, has_normal_double;  // Box-Muller makes two numbers: the second waits here
    float normal;
    double normal_double;
};
typedef curandStateXORWOW curandStateXORWOW_t, curandState_t, curandState;

struct curandStatePhilox4_32_10 {
    uint4 counter, output;
    uint2 key;
    unsigned used;  // of the four numbers in output
    bool has_normal, has_normal_double;
    float normal;
    double normal_double;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

// ---- XORWOW: a xorshift of five words plus a counter

__host__ __device__ inline unsigned curand(curandStateXORWOW* s) {
    unsigned t = s->v[0] ^ (s->v[0] >> 2);
    for (int i = 0; i < 4; i++)
        s->v[i] = s->v[i + 1];
    s->v[4] = s->v[4] ^ (s->v[4] << 4) ^ t ^ (t << 1);
    s->d += 362437;
    return s->v[4] + s->d;
}

namespace cuda_cpu {
// A step is linear over the bits of v, so 2^k steps are a matrix: column i is what 2^k steps make
// of bit i alone.
struct XorwowJumps {
    static const int powers = 67 + 64;
    unsigned column[powers][160][5];

    XorwowJumps() {
        for (int i = 0; i < 160; i++) {
            curandStateXORWOW s = {};
            s.v[i / 32] = 1u << (i % 32);
            ::curand(&s);
            for (int k = 0; k < 5; k++)
                column[0][i][k] = s.v[k];
        }
        for (int p = 1; p < powers; p++)
            for (int i = 0; i < 160; i++) {
                for (int k = 0; k < 5; k++)
                    column[p][i][k] = column[p - 1][i][k];
                apply(p - 1, column[p][i]);
            }
    }
    void apply(int power, unsigned v[5]) const {
        unsigned result[5] = {};
        for (int i = 0; i < 160; i++)
            if (v[i / 32] >> (i % 32) & 1)
                for (int k = 0; k < 5; k++)
                    result[k] ^= column[power][i][k];
        for (int k = 0; k < 5; k++)
            v[k] = result[k];
    }
    static void jump(unsigned v[5], unsigned long long count, int shift) {
        if (!count)
            return;
        static const XorwowJumps jumps;
        for (int p = 0; count; p++, count >>= 1)
            if (count & 1)
                jumps.apply(p + shift, v);
    }
};
}  // namespace cuda_cpu

__host__ __device__ inline void skipahead(unsigned long long n, curandStateXORWOW* s) {
    ::cuda_cpu::XorwowJumps::jump(s->v, n, 0);
    s->d += 362437u * (unsigned)n;
}
__host__ __device__ inline void skipahead_sequence(unsigned long long n, curandStateXORWOW* s) {
    ::cuda_cpu::XorwowJumps::jump(s->v, n, 67);
}
__host__ __device__ inline void curand_init(unsigned long long seed, unsigned long long sequence,
                                            unsigned long long offset, curandStateXORWOW* s) {
    unsigned a = 1099087573u * ((unsigned)seed ^ 0xaad26b49u);
    unsigned b = 2591861531u * ((unsigned)(seed >> 32) ^ 0xf7dcefddu);
    *s = {6615241u + a + b,
          {123456789u + a, 362436069u ^ a, 521288629u + b, 88675123u ^ b, 5783321u + a},
          false,
          false,
          0,
          0};
    skipahead_sequence(sequence, s);
    skipahead(offset, s);
}

// ---- Philox4x32-10: ten rounds of multiplication scramble a counter of 128 bits; the key is the
// seed

namespace cuda_cpu {
inline uint4 philox(uint4 c, uint2 key) {
    for (int round = 0; round < 10; round++) {
        unsigned long long p = 0xD2511F53ull * c.x, q = 0xCD9E8D57ull * c.z;
        c = {(unsigned)(q >> 32) ^ c.y ^ key.x, (unsigned)q, (unsigned)(p >> 32) ^ c.w ^ key.y,
             (unsigned)p};
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return c;
}
inline void philox_advance(curandStatePhilox4_32_10* s, unsigned long long blocks) {
    unsigned long long low = s->counter.x | (unsigned long long)s->counter.y << 32;
    unsigned long long high = s->counter.z | (unsigned long long)s->counter.w << 32;
    if (low + blocks < low)
        high++;
    low += blocks;
    s->counter = {(unsigned)low, (unsigned)(low >> 32), (unsigned)high, (unsigned)(high >> 32)};
    s->output = philox(s->counter, s->key);
}
}  // namespace cuda_cpu

__host__ __device__ inline unsigned curand(curandStatePhilox4_32_10* s) {
    const unsigned values[] = {s->output.x, s->output.y, s->output.z, s->output.w};
    unsigned value = values[s->used++];
    if (s->used == 4) {
        ::cuda_cpu::philox_advance(s, 1);
        s->used = 0;
    }
    return value;
}
__host__ __device__ inline uint4 curand4(curandStatePhilox4_32_10* s) {
    uint4 r;
    r.x = curand(s);
    r.y = curand(s);
    r.z = curand(s);
    r.w = curand(s);
    return r;
}
__host__ __device__ inline void skipahead(unsigned long long n, curandStatePhilox4_32_10* s) {
    unsigned long long blocks = n / 4;
    s->used += n % 4;
    if (s->used > 3) {
        s->used -= 4;
        blocks++;
    }
    ::cuda_cpu::philox_advance(s, blocks);
}
__host__ __device__ inline void skipahead_sequence(unsigned long long n,
                                                   curandStatePhilox4_32_10* s) {
    unsigned long long high = (s->counter.z | (unsigned long long)s->counter.w << 32) + n;
    s->counter.z = (unsigned)high;
    s->counter.w = (unsigned)(high >> 32);
    s->output = ::cuda_cpu::philox(s->counter, s->key);
}
__host__ __device__ inline void curand_init(unsigned long long seed, unsigned long long sequence,
                                            unsigned long long offset,
                                            curandStatePhilox4_32_10* s) {
    *s = {{0, 0, 0, 0},
          {0, 0, 0, 0},
          {(unsigned)seed, (unsigned)(seed >> 32)},
          0,
          false,
          false,
          0,
          0};
    skipahead_sequence(sequence, s);
    skipahead(offset, s);
}

// ---- Sobol: number n of a dimension is the exclusive or of the direction vectors at the set bits
// of n's Gray code, so each differs from the one before by one vector. I. Sobol (1967); Antonov and
// Saleev (1979).

typedef unsigned curandDirectionVectors32_t[32];
struct curandStateSobol32 {
    unsigned index, value, vectors[32];
};
typedef curandStateSobol32 curandStateSobol32_t;
struct curandStateScrambledSobol32 : curandStateSobol32 {};
typedef curandStateScrambledSobol32 curandStateScrambledSobol32_t;

namespace cuda_cpu {
template <class S>
using IfSobol = std::enable_if_t<std::is_base_of_v<curandStateSobol32, S>, int>;
}
template <class S, ::cuda_cpu::IfSobol<S> = 0>
__host__ __device__ inline void skipahead(unsigned n, S* s) {
    unsigned before = s->index ^ (s->index >> 1);
    s->index += n;
    unsigned changed = before ^ s->index ^ (s->index >> 1);
    for (int bit = 0; bit < 32; bit++)
        if (changed >> bit & 1)
            s->value ^= s->vectors[bit];
}
__host__ __device__ inline void curand_init(const unsigned* vectors, unsigned offset,
                                            curandStateSobol32* s) {
    s->index = s->value = 0;
    __builtin_memcpy(s->vectors, vectors, sizeof s->vectors);
    skipahead(offset, s);
}
__host__ __device__ inline void curand_init(const unsigned* vectors, unsigned scramble,
                                            unsigned offset, curandStateScrambledSobol32* s) {
    curand_init(vectors, offset, static_cast<curandStateSobol32*>(s));
    s->value ^= scramble;
}
template <class S, ::cuda_cpu::IfSobol<S> = 0>
__host__ __device__ inline unsigned curand(S* s) {
    unsigned value = s->value;
    skipahead(1, s);
    return value;
}

// ---- distributions

namespace cuda_cpu {
template <class S>
using IfCurand = std::enable_if_t<
    std::is_same_v<S, curandStateXORWOW> || std::is_same_v<S, curandStatePhilox4_32_10>, int>;
template <class S>
using IfAny = std::enable_if_t<std::is_base_of_v<curandStateSobol32, S> ||
                                   std::is_same_v<S, curandStateXORWOW> ||
                                   std::is_same_v<S, curandStatePhilox4_32_10>,
                               int>;

inline float uniform(unsigned x) {
    return x * 0x1p-32f + 0x1p-33f;
}  // in (0, 1]
inline double uniform_double(unsigned low, unsigned high) {
    return (low ^ (unsigned long long)high << 21) * 0x1p-53 + 0x1p-54;
}
inline float2 box_muller(unsigned x, unsigned y) {
    const float turn = 2.3283064e-10f * 6.2831855f;
    float r = std::sqrt(-2.0f * std::log(uniform(x))), angle = std::fma(float(y), turn, turn / 2);
    return {r * std::sin(angle), r * std::cos(angle)};
}
inline double2 box_muller_double(unsigned x0, unsigned x1, unsigned y0, unsigned y1) {
    double r = std::sqrt(-2.0 * std::log(uniform_double(x0, x1)));
    double angle = 2 * uniform_double(y0, y1) * 3.14159265358979323846;
    return {r * std::sin(angle), r * std::cos(angle)};
}
}  // namespace cuda_cpu

template <class S, ::cuda_cpu::IfAny<S> = 0>
__host__ __device__ inline float curand_uniform(S* s) {
    return ::cuda_cpu::uniform(curand(s));
}
template <class S, ::cuda_cpu::IfSobol<S> = 0>
__host__ __device__ inline double curand_uniform_double(S* s) {
    return curand(s) * 0x1p-32 + 0x1p-32;
}
// One number makes one: by the inverse of the normal distribution, not by pairs.
template <class S, ::cuda_cpu::IfSobol<S> = 0>
__host__ __device__ inline double curand_normal_double(S* s) {
    return normcdfinv(curand(s) * 0x1p-32 + 0x1p-33);
}
template <class S, ::cuda_cpu::IfSobol<S> = 0>
__host__ __device__ inline float curand_normal(S* s) {
    return float(curand_normal_double(s));
}
template <class S, ::cuda_cpu::IfSobol<S> = 0>
__host__ __device__ inline float curand_log_normal(S* s, float mean, float stddev) {
    return std::exp(mean + stddev * curand_normal(s));
}
template <class S, ::cuda_cpu::IfSobol<S> = 0>
__host__ __device__ inline double curand_log_normal_double(S* s, double mean, double stddev) {
    return std::exp(mean + stddev * curand_normal_double(s));
}

__host__ __device__ inline double curand_uniform_double(curandStateXORWOW* s) {
    unsigned low = curand(s), high = curand(s);
    return ::cuda_cpu::uniform_double(low, high);
}
__host__ __device__ inline double curand_uniform_double(curandStatePhilox4_32_10* s) {
    return curand(s) * 0x1p-32 + 0x1p-32;
}
__host__ __device__ inline float4 curand_uniform4(curandStatePhilox4_32_10* s) {
    uint4 x = curand4(s);
    return {::cuda_cpu::uniform(x.x), ::cuda_cpu::uniform(x.y), ::cuda_cpu::uniform(x.z),
            ::cuda_cpu::uniform(x.w)};
}
__host__ __device__ inline double2 curand_uniform2_double(curandStatePhilox4_32_10* s) {
    uint4 x = curand4(s);
    return {::cuda_cpu::uniform_double(x.x, x.y), ::cuda_cpu::uniform_double(x.z, x.w)};
}

template <class S, ::cuda_cpu::IfCurand<S> = 0>
__host__ __device__ inline float2 curand_normal2(S* s) {
    unsigned x = curand(s), y = curand(s);
    return ::cuda_cpu::box_muller(x, y);
}
template <class S, ::cuda_cpu::IfCurand<S> = 0>
__host__ __device__ inline float curand_normal(S* s) {
    s->has_normal = !s->has_normal;
    if (!s->has_normal)
        return s->normal;
    float2 pair = curand_normal2(s);
    s->normal = pair.y;
    return pair.x;
}
__host__ __device__ inline float4 curand_normal4(curandStatePhilox4_32_10* s) {
    float2 a = curand_normal2(s), b = curand_normal2(s);
    return {a.x, a.y, b.x, b.y};
}
template <class S, ::cuda_cpu::IfCurand<S> = 0>
__host__ __device__ inline double2 curand_normal2_double(S* s) {
    unsigned x0 = curand(s), x1 = curand(s), y0 = curand(s), y1 = curand(s);
    return ::cuda_cpu::box_muller_double(x0, x1, y0, y1);
}
template <class S, ::cuda_cpu::IfCurand<S> = 0>
__host__ __device__ inline double curand_normal_double(S* s) {
    s->has_normal_double = !s->has_normal_double;
    if (!s->has_normal_double)
        return s->normal_double;
    double2 pair = curand_normal2_double(s);
    s->normal_double = pair.y;
    return pair.x;
}

template <class S, ::cuda_cpu::IfCurand<S> = 0>
__host__ __device__ inline float curand_log_normal(S* s, float mean, float stddev) {
    return std::exp(mean + stddev * curand_normal(s));
}
template <class S, ::cuda_cpu::IfCurand<S> = 0>
__host__ __device__ inline float2 curand_log_normal2(S* s, float mean, float stddev) {
    float2 v = curand_normal2(s);
    return {std::exp(mean + stddev * v.x), std::exp(mean + stddev * v.y)};
}
template <class S, ::cuda_cpu::IfCurand<S> = 0>
__host__ __device__ inline double curand_log_normal_double(S* s, double mean, double stddev) {
    return std::exp(mean + stddev * curand_normal_double(s));
}

__host__ __device__ inline float4 curand_log_normal4(curandStatePhilox4_32_10* s, float mean,
                                                     float stddev) {
    float2 a = curand_log_normal2(s, mean, stddev), b = curand_log_normal2(s, mean, stddev);
    return {a.x, a.y, b.x, b.y};
}
template <class S, ::cuda_cpu::IfCurand<S> = 0>
__host__ __device__ inline double2 curand_log_normal2_double(S* s, double mean, double stddev) {
    double2 v = curand_normal2_double(s);
    return {std::exp(mean + stddev * v.x), std::exp(mean + stddev * v.y)};
}

template <class S, ::cuda_cpu::IfCurand<S> = 0>
__host__ __device__ inline unsigned curand_poisson(S* s, double mean) {
    auto uniform = [=] { return curand_uniform(s); };
    if (mean < 64)
        return ::cuda_cpu::poisson_by_products(uniform, float(mean));
    if (mean > 4000)
        return ::cuda_cpu::rounded_poisson(curand_normal_double(s), mean);
    return ::cuda_cpu::poisson_by_rejection(uniform, float(mean));
}
__host__ __device__ inline uint4 curand_poisson4(curandStatePhilox4_32_10* s, double mean) {
    uint4 r;
    if (mean > 4000) {
        double2 a = curand_normal2_double(s), b = curand_normal2_double(s);
        r.x = ::cuda_cpu::rounded_poisson(a.x, mean);
        r.y = ::cuda_cpu::rounded_poisson(a.y, mean);
        r.z = ::cuda_cpu::rounded_poisson(b.x, mean);
        r.w = ::cuda_cpu::rounded_poisson(b.y, mean);
        return r;
    }
    r.x = curand_poisson(s, mean);
    r.y = curand_poisson(s, mean);
    r.z = curand_poisson(s, mean);
    r.w = curand_poisson(s, mean);
    return r;
}
#include "macros_back.inc"
#ifndef __CUDACC_RTC__  // NVIDIA's brings the host's functions, too
#include "curand.h"
#endif
