// Thrust's random numbers: the default engine and the uniform distributions are Thrust's own
// formulas; the normal distribution is Box-Muller, so its numbers differ from the library's.
#pragma once
#include <random>
#include "../macros_aside.inc"

namespace thrust {
using minstd_rand = std::minstd_rand;
using minstd_rand0 = std::minstd_rand0;
using default_random_engine = std::minstd_rand;

template <class T = double>
struct uniform_real_distribution {
    T a, b;
    explicit uniform_real_distribution(T a = 0, T b = 1) : a(a), b(b) {}
    template <class G>
    __host__ __device__ T operator()(G& g) {
        T x = T(g() - G::min()) / (T(G::max() - G::min()) + T(1));
        return x * (b - a) + a;
    }
};
template <class T = int>
struct uniform_int_distribution {
    T a, b;
    explicit uniform_int_distribution(T a = 0, T b = 100) : a(a), b(b) {}
    template <class G>
    __host__ __device__ T operator()(G& g) {
        return T(std::floor(uniform_real_distribution<double>(double(a), double(b) + 1)(g)));
    }
};
template <class T = double>
struct normal_distribution {
    T mean, stddev;
    explicit normal_distribution(T mean = 0, T stddev = 1) : mean(mean), stddev(stddev) {}
    template <class G>
    __host__ __device__ T operator()(G& g) {
        uniform_real_distribution<double> u;
        double radius = std::sqrt(-2 * std::log(1 - u(g))),
               angle = 2 * 3.14159265358979323846 * u(g);
        return T(mean + stddev * radius * std::cos(angle));
    }
};
namespace random {
using thrust::default_random_engine;
using thrust::minstd_rand;
using thrust::normal_distribution;
using thrust::uniform_int_distribution;
using thrust::uniform_real_distribution;
}  // namespace random
}  // namespace thrust
#include "../macros_back.inc"
