// cuRAND's host interface on the CPU: XORWOW (the default) and Philox4x32-10.
//
// All numbers are NVIDIA's, in NVIDIA's order (checked against its library, whichever calls follow
// one another); normal ones differ by a few units in the last place. Generators that are missing
// here (MRG32k3a, MTGP32, MT19937, the quasi-random ones) are refused by name.
#pragma once
#define CURAND_H_  // asked for by helper_cuda.h
#include <sys/mman.h>
#include <vector>
#include "curand_kernel.h"
#include "device_task.h"
#include "macros_aside.inc"

enum curandStatus_t {
    CURAND_STATUS_SUCCESS = 0,
    CURAND_STATUS_VERSION_MISMATCH = 100,
    CURAND_STATUS_NOT_INITIALIZED = 101,
    CURAND_STATUS_ALLOCATION_FAILED = 102,
    CURAND_STATUS_TYPE_ERROR = 103,
    CURAND_STATUS_OUT_OF_RANGE = 104,
    CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
    CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
    CURAND_STATUS_LAUNCH_FAILURE = 201,
    CURAND_STATUS_PREEXISTING_FAILURE = 202,
    CURAND_STATUS_INITIALIZATION_FAILED = 203,
    CURAND_STATUS_ARCH_MISMATCH = 204,
    CURAND_STATUS_INTERNAL_ERROR = 999
};
enum curandRngType_t {
    CURAND_RNG_TEST = 0,
    CURAND_RNG_PSEUDO_DEFAULT = 100,
    CURAND_RNG_PSEUDO_XORWOW = 101,
    CURAND_RNG_PSEUDO_MRG32K3A = 121,
    CURAND_RNG_PSEUDO_MTGP32 = 141,
    CURAND_RNG_PSEUDO_MT19937 = 142,
    CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
    CURAND_RNG_QUASI_DEFAULT = 200,
    CURAND_RNG_QUASI_SOBOL32 = 201,
    CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202,
    CURAND_RNG_QUASI_SOBOL64 = 203,
    CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204
};
enum curandOrdering_t {
    CURAND_ORDERING_PSEUDO_BEST = 100,
    CURAND_ORDERING_PSEUDO_DEFAULT = 101,
    CURAND_ORDERING_PSEUDO_SEEDED = 102,
    CURAND_ORDERING_PSEUDO_LEGACY = 103,
    CURAND_ORDERING_PSEUDO_DYNAMIC = 104,
    CURAND_ORDERING_QUASI_DEFAULT = 201
};

namespace cuda_cpu {
// Who deals out the numbers. Results are made in turns, each by the next sequence, which goes on
// from where its last turn left it: with XORWOW by 4096 sequences, one result or a pair in turn;
// with Philox by 65536, four results in turn, of which a call may leave some to the next one.
struct RandomGenerator {
    curandRngType_t type;
    bool on_host;
    cudaStream_t stream = nullptr;
    unsigned long long seed = 0, offset = 0;

    static const unsigned xorwows = 4096, philoxes = 65536;
    std::vector<curandStateXORWOW> xorwow;  // both are empty until needed
    std::vector<unsigned> philox_blocks;  // how many blocks of four numbers each has used
    unsigned turn = 0;
    unsigned dealt = 0;  // of the four results of Philox's turn

    bool is_philox() const {
        return type == CURAND_RNG_PSEUDO_PHILOX4_32_10;
    }

    void restart(unsigned long long at) {
        offset = at;
        xorwow.clear();
        philox_blocks.clear();
    }
    void begin_xorwow() {
        xorwow.resize(xorwows);
        curand_init(seed, 0, 0, &xorwow[0]);
        for (unsigned q = 1; q < xorwows; q++) {
            xorwow[q] = xorwow[q - 1];
            skipahead_sequence(1, &xorwow[q]);
        }
        for (unsigned q = 0; q < xorwows; q++)
            skipahead(offset / xorwows + (q < offset % xorwows), &xorwow[q]);
        turn = offset % xorwows;
    }
    void begin_philox() {
        unsigned long long group = offset / 4;
        for (unsigned q = 0; q < philoxes; q++)
            philox_blocks.push_back(group / philoxes + (q < group % philoxes));
        turn = group % philoxes;
        dealt = offset % 4;
    }
    // `one(state, to)` writes what a turn gives and says how many that is.
    template <class T, class One>
    void deal_xorwow(T* out, size_t n, One one) {
        if (xorwow.empty())
            begin_xorwow();
        for (size_t i = 0; i < n; turn = (turn + 1) % xorwows)
            i += one(&xorwow[turn], out + i);
    }
    // `four(state, to)` writes four results.
    template <class T, class Four>
    void deal_philox(T* out, size_t n, Four four) {
        if (philox_blocks.empty())
            begin_philox();
        for (size_t i = 0; i < n;) {
            curandStatePhilox4_32_10 state;
            curand_init(seed, turn, 4ull * philox_blocks[turn], &state);
            T results[4];
            four(&state, results);
            for (; dealt < 4 && i < n; dealt++)
                out[i++] = results[dealt];
            if (dealt < 4)
                return;
            dealt = 0;
            philox_blocks[turn] = state.counter.x;
            turn = (turn + 1) % philoxes;
        }
    }
};

// Fills `out` with n values, in the generator's stream. They are made on the host and copied; where
// the stream is captured they are made by the graph, new ones each time it runs.
template <class T, class One, class Four>
inline curandStatus_t generate(RandomGenerator* g, T* out, size_t n, One one, Four four) {
    if (!g)
        return CURAND_STATUS_NOT_INITIALIZED;
    auto fill = [=](T* to) {
        if (g->is_philox())
            g->deal_philox(to, n, four);
        else
            g->deal_xorwow(to, n, one);
    };
    if (g->on_host) {
        fill(out);
        return CURAND_STATUS_SUCCESS;
    }
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(g->stream, &capture);
    cudaError_t error;
    if (capture == cudaStreamCaptureStatusNone) {
        std::vector<T> values(n);
        fill(values.data());
        error = cudaMemcpyAsync(out, values.data(), n * sizeof(T), cudaMemcpyDefault, g->stream);
    } else {
        error = device_task(g->stream, n > 0, [=](long) { fill(out); });
    }
    return error == cudaSuccess ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}
// Where each number of 32 bits makes one result.
template <class T, class F>
inline curandStatus_t generate_each(RandomGenerator* g, T* out, size_t n, F make) {
    auto one = [=](curandStateXORWOW* s, T* to) {
        *to = make(curand(s));
        return 1;
    };
    auto four = [=](curandStatePhilox4_32_10* s, T* to) {
        for (int k = 0; k < 4; k++)
            to[k] = make(curand(s));
    };
    return generate(g, out, n, one, four);
}
template <class T, class S>
inline void normal_pair(S* s, T* to) {
    if constexpr (sizeof(T) == 4) {
        float2 v = curand_normal2(s);
        to[0] = v.x, to[1] = v.y;
    } else {
        double2 v = curand_normal2_double(s);
        to[0] = v.x, to[1] = v.y;
    }
}
// Normal numbers come in pairs. NVIDIA's library refuses an odd n for XORWOW; for Philox it takes
// one, although its manual refuses it for every pseudo-random generator.
template <class T, class F>
inline curandStatus_t generate_normal(RandomGenerator* g, T* out, size_t n, F finish) {
    if (g && !g->is_philox() && n % 2)
        return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    auto pair = [=](auto* s, T* to) {
        normal_pair(s, to);
        to[0] = finish(to[0]), to[1] = finish(to[1]);
        return 2;
    };
    auto four = [=](curandStatePhilox4_32_10* s, T* to) {
        pair(s, to);
        pair(s, to + 2);
    };
    return generate(g, out, n, pair, four);
}
inline const char* missing_generator(curandRngType_t type) {
    switch (type) {
        case CURAND_RNG_PSEUDO_MRG32K3A:
            return "CURAND_RNG_PSEUDO_MRG32K3A";
        case CURAND_RNG_PSEUDO_MTGP32:
            return "CURAND_RNG_PSEUDO_MTGP32";
        case CURAND_RNG_PSEUDO_MT19937:
            return "CURAND_RNG_PSEUDO_MT19937";
        default:
            return type >= CURAND_RNG_QUASI_DEFAULT ? "a quasi-random generator (Sobol)"
                                                    : "this generator";
    }
}
}  // namespace cuda_cpu
typedef ::cuda_cpu::RandomGenerator* curandGenerator_t;

inline curandStatus_t curandCreateGenerator(curandGenerator_t* g, curandRngType_t type) {
    if (type != CURAND_RNG_PSEUDO_DEFAULT && type != CURAND_RNG_PSEUDO_XORWOW &&
        type != CURAND_RNG_PSEUDO_PHILOX4_32_10) {
        fprintf(stderr,
                "curandCreateGenerator: CURAND_STATUS_TYPE_ERROR: %s is not offered on the CPU; "
                "CURAND_RNG_PSEUDO_XORWOW and CURAND_RNG_PSEUDO_PHILOX4_32_10 are\n",
                ::cuda_cpu::missing_generator(type));
        *g = nullptr;
        return CURAND_STATUS_TYPE_ERROR;
    }
    *g = new ::cuda_cpu::RandomGenerator{type, false};
    return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t* g, curandRngType_t type) {
    curandStatus_t status = curandCreateGenerator(g, type);
    if (status == CURAND_STATUS_SUCCESS)
        (*g)->on_host = true;
    return status;
}
inline curandStatus_t curandDestroyGenerator(curandGenerator_t g) {
    if (!g)
        return CURAND_STATUS_NOT_INITIALIZED;
    delete g;
    return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t g,
                                                         unsigned long long seed) {
    if (!g)
        return CURAND_STATUS_NOT_INITIALIZED;
    g->seed = seed;
    g->restart(0);
    return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOffset(curandGenerator_t g, unsigned long long offset) {
    if (!g)
        return CURAND_STATUS_NOT_INITIALIZED;
    g->restart(offset);
    return CURAND_STATUS_SUCCESS;
}
// The orders that deal the numbers out as the default one does.
inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t g, curandOrdering_t order) {
    if (!g)
        return CURAND_STATUS_NOT_INITIALIZED;
    bool usual = order == CURAND_ORDERING_PSEUDO_BEST || order == CURAND_ORDERING_PSEUDO_DEFAULT ||
                 order == CURAND_ORDERING_PSEUDO_LEGACY;
    if (!usual)
        fprintf(stderr,
                "curandSetGeneratorOrdering: CURAND_STATUS_OUT_OF_RANGE: order %d is not offered "
                "on the CPU; CURAND_ORDERING_PSEUDO_DEFAULT is\n",
                (int)order);
    return usual ? CURAND_STATUS_SUCCESS : CURAND_STATUS_OUT_OF_RANGE;
}
inline curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t g, unsigned) {
    return g ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_NOT_INITIALIZED;
}
// Direction vectors for Sobol's numbers, of the first dimensions only: their primitive polynomials
// and first numbers are those of S. Joe and F. Kuo, "Constructing Sobol sequences with better
// two-dimensional projections" (2008), file new-joe-kuo-6.
enum curandDirectionVectorSet_t {
    CURAND_DIRECTION_VECTORS_32_JOEKUO6 = 101,
    CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6 = 102,
    CURAND_DIRECTION_VECTORS_64_JOEKUO6 = 103,
    CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6 = 104
};
namespace cuda_cpu {
struct Dimension {
    unsigned degree, polynomial, first[7];
};
const Dimension dimensions[] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
};
const unsigned sobol_dimensions = 1 + sizeof dimensions / sizeof *dimensions;
// They end at a page that nobody may read: no program gets numbers of a dimension that is not here.
inline curandDirectionVectors32_t* sobol_vectors() {
    static curandDirectionVectors32_t* all = nullptr;
    if (all)
        return all;
    const size_t page = 65536;
    void* pages =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* end = static_cast<char*>(pages) + page;
    mprotect(end, page, PROT_NONE);
    all = reinterpret_cast<curandDirectionVectors32_t*>(end) - sobol_dimensions;
    for (unsigned bit = 0; bit < 32; bit++)
        all[0][bit] = 1u << (31 - bit);
    for (unsigned d = 1; d < sobol_dimensions; d++) {
        const Dimension& known = dimensions[d - 1];
        unsigned* v = all[d];
        for (unsigned bit = 0; bit < 32; bit++) {
            if (bit < known.degree) {
                v[bit] = known.first[bit] << (31 - bit);
                continue;
            }
            v[bit] = v[bit - known.degree] ^ (v[bit - known.degree] >> known.degree);
            for (unsigned k = 1; k < known.degree; k++)
                if (known.polynomial >> (known.degree - 1 - k) & 1)
                    v[bit] ^= v[bit - k];
        }
    }
    return all;
}
}  // namespace cuda_cpu
inline curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t* vectors[],
                                                  curandDirectionVectorSet_t set) {
    if (!vectors || set != CURAND_DIRECTION_VECTORS_32_JOEKUO6)
        return CURAND_STATUS_OUT_OF_RANGE;
    *vectors = ::cuda_cpu::sobol_vectors();
    return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetStream(curandGenerator_t g, cudaStream_t stream) {
    if (!g)
        return CURAND_STATUS_NOT_INITIALIZED;
    g->stream = stream;
    return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGenerateSeeds(curandGenerator_t g) {
    return g ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
inline curandStatus_t curandGetVersion(int* version) {
    *version = 10400;
    return CURAND_STATUS_SUCCESS;
}

inline curandStatus_t curandGenerate(curandGenerator_t g, unsigned* out, size_t n) {
    return ::cuda_cpu::generate_each(g, out, n, [](unsigned bits) { return bits; });
}
inline curandStatus_t curandGenerateUniform(curandGenerator_t g, float* out, size_t n) {
    return ::cuda_cpu::generate_each(g, out, n, ::cuda_cpu::uniform);
}
inline curandStatus_t curandGenerateUniformDouble(curandGenerator_t g, double* out, size_t n) {
    auto one = [](curandStateXORWOW* s, double* to) {
        *to = curand_uniform_double(s);
        return 1;
    };
    auto four = [](curandStatePhilox4_32_10* s, double* to) {
        double2 a = curand_uniform2_double(s), b = curand_uniform2_double(s);
        to[0] = a.x, to[1] = a.y, to[2] = b.x, to[3] = b.y;
    };
    return ::cuda_cpu::generate(g, out, n, one, four);
}
inline curandStatus_t curandGenerateNormal(curandGenerator_t g, float* out, size_t n, float mean,
                                           float stddev) {
    return ::cuda_cpu::generate_normal(g, out, n, [=](float z) { return mean + stddev * z; });
}
inline curandStatus_t curandGenerateNormalDouble(curandGenerator_t g, double* out, size_t n,
                                                 double mean, double stddev) {
    return ::cuda_cpu::generate_normal(g, out, n, [=](double z) { return mean + stddev * z; });
}
inline curandStatus_t curandGenerateLogNormal(curandGenerator_t g, float* out, size_t n, float mean,
                                              float stddev) {
    return ::cuda_cpu::generate_normal(g, out, n,
                                       [=](float z) { return std::exp(mean + stddev * z); });
}
inline curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t g, double* out, size_t n,
                                                    double mean, double stddev) {
    return ::cuda_cpu::generate_normal(g, out, n,
                                       [=](double z) { return std::exp(mean + stddev * z); });
}
// Unlike in a kernel: up to a mean of 2000 by the square histogram, so that each number makes one
// result; beyond it of normal numbers of single precision.
inline curandStatus_t curandGeneratePoisson(curandGenerator_t g, unsigned* out, size_t n,
                                            double mean) {
    const double greatest_of_tables = 2000, greatest = 400000;
    if (!(mean > 0 && mean <= greatest))
        return CURAND_STATUS_OUT_OF_RANGE;
    if (mean < greatest_of_tables)
        return ::cuda_cpu::generate_each(g, out, n, ::cuda_cpu::PoissonTable(mean));
    auto one = [=](curandStateXORWOW* s, unsigned* to) {
        *to = ::cuda_cpu::rounded_poisson(curand_normal(s), mean);
        return 1;
    };
    auto four = [=](curandStatePhilox4_32_10* s, unsigned* to) {
        for (int k = 0; k < 4; k++)
            to[k] = ::cuda_cpu::rounded_poisson(curand_normal(s), mean);
    };
    return ::cuda_cpu::generate(g, out, n, one, four);
}
#include "macros_back.inc"
