// cuRAND's host interface on the CPU: XORWOW (the default) and Philox4x32-10.
//
// curandGenerate, curandGenerateUniform give the same numbers in the same order as NVIDIA's library
// (checked against it): XORWOW takes number n from sequence n % 4096, Philox in groups of four from
// sequence n / 4 % 65536. Doubles and normal numbers are made of the same bits, but dealt out in
// another order. Generators that are missing here (MRG32k3a, MTGP32, MT19937, the quasi-random
// ones) are refused by name.
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
struct RandomGenerator {
    curandRngType_t type;
    bool on_host;
    cudaStream_t stream = nullptr;
    unsigned long long seed = 0, position = 0;
    std::vector<curandStateXORWOW>
        sequences;  // of XORWOW, each where its next number is; empty until needed

    unsigned next() {
        unsigned long long n = position++;
        if (type == CURAND_RNG_PSEUDO_PHILOX4_32_10) {
            unsigned long long group = n / 4;
            uint4 c = {(unsigned)(group / 65536), (unsigned)(group / 65536 >> 32),
                       (unsigned)(group % 65536), 0};
            uint4 r = philox(c, {(unsigned)seed, (unsigned)(seed >> 32)});
            const unsigned values[] = {r.x, r.y, r.z, r.w};
            return values[n % 4];
        }
        if (sequences.empty()) {
            sequences.resize(4096);
            curand_init(seed, 0, 0, &sequences[0]);
            for (int q = 1; q < 4096; q++) {
                sequences[q] = sequences[q - 1];
                skipahead_sequence(1, &sequences[q]);
            }
            for (unsigned q = 0; q < 4096; q++)
                skipahead(n / 4096 + (q < n % 4096), &sequences[q]);
        }
        return curand(&sequences[n % 4096]);
    }
    void restart(unsigned long long at) {
        position = at;
        sequences.clear();
    }
};

// Fills `out` with n values made by `make`, in the generator's stream. They are made on the host
// and copied; where the stream is captured they are made by the graph, new ones each time it runs.
template <class T, class F>
inline curandStatus_t generate(RandomGenerator* g, T* out, size_t n, F make) {
    if (!g)
        return CURAND_STATUS_NOT_INITIALIZED;
    auto fill = [=](T* to) {
        F next = make;
        for (size_t i = 0; i < n; i++)
            to[i] = next();
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
// Normal numbers come in pairs. NVIDIA's library refuses an odd n for XORWOW; for Philox it takes
// one, although its manual refuses it for every pseudo-random generator.
template <class T, class F>
inline curandStatus_t generate_normal(RandomGenerator* g, T* out, size_t n, F finish) {
    if (g && g->type != CURAND_RNG_PSEUDO_PHILOX4_32_10 && n % 2)
        return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    double2 pair = {0, 0};
    bool second = false;
    return generate(g, out, n, [=]() mutable -> T {
        second = !second;
        if (!second)
            return T(finish(pair.y));
        if constexpr (sizeof(T) == 4) {
            unsigned x = g->next(), y = g->next();
            float2 v = box_muller(x, y);
            pair = {v.x, v.y};
        } else {
            unsigned x0 = g->next(), x1 = g->next(), y0 = g->next(), y1 = g->next();
            pair = box_muller_double(x0, x1, y0, y1);
        }
        return T(finish(pair.x));
    });
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
    return ::cuda_cpu::generate(g, out, n, [=] { return g->next(); });
}
inline curandStatus_t curandGenerateUniform(curandGenerator_t g, float* out, size_t n) {
    return ::cuda_cpu::generate(g, out, n, [=] { return ::cuda_cpu::uniform(g->next()); });
}
inline curandStatus_t curandGenerateUniformDouble(curandGenerator_t g, double* out, size_t n) {
    return ::cuda_cpu::generate(g, out, n, [=] {
        unsigned low = g->next(), high = g->next();
        return ::cuda_cpu::uniform_double(low, high);
    });
}
inline curandStatus_t curandGenerateNormal(curandGenerator_t g, float* out, size_t n, float mean,
                                           float stddev) {
    return ::cuda_cpu::generate_normal(g, out, n,
                                       [=](double z) { return mean + stddev * float(z); });
}
inline curandStatus_t curandGenerateNormalDouble(curandGenerator_t g, double* out, size_t n,
                                                 double mean, double stddev) {
    return ::cuda_cpu::generate_normal(g, out, n, [=](double z) { return mean + stddev * z; });
}
inline curandStatus_t curandGenerateLogNormal(curandGenerator_t g, float* out, size_t n, float mean,
                                              float stddev) {
    return ::cuda_cpu::generate_normal(
        g, out, n, [=](double z) { return std::exp(mean + stddev * float(z)); });
}
inline curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t g, double* out, size_t n,
                                                    double mean, double stddev) {
    return ::cuda_cpu::generate_normal(g, out, n,
                                       [=](double z) { return std::exp(mean + stddev * z); });
}
inline curandStatus_t curandGeneratePoisson(curandGenerator_t g, unsigned* out, size_t n,
                                            double mean) {
    if (!(mean > 0))
        return CURAND_STATUS_OUT_OF_RANGE;
    curandStatePhilox4_32_10 s;
    if (g)
        curand_init(g->seed, 1ull << 62, g->position, &s);
    return ::cuda_cpu::generate(g, out, n, [=]() mutable {
        g->next();  // keeps the position
        return curand_poisson(&s, mean);
    });
}
#include "macros_back.inc"
