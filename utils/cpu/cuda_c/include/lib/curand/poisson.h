// Poisson numbers, by the methods of cuRAND: which one is taken, and how many uniform numbers it
// uses, decides which numbers come out. Sources: D. Knuth, "The Art of Computer Programming",
// volume 2, 3.4.1; G. Marsaglia, W. Tsang, J. Wang, "Fast generation of discrete random variables"
// (2004), for the square histogram; NVIDIA's curand_poisson.h, for the limits between the methods
// and the constants of its approximation.
#pragma once
#include <cmath>
#include <vector>
#include "../macros_aside.inc"

namespace cuda_cpu {
// Each uniform number shrinks the product e^mean; how many it takes to get to 1.
template <class Uniform>
inline unsigned poisson_by_products(Uniform uniform, float mean) {
    float product = std::exp(mean);
    for (unsigned count = 0;; count++) {
        product *= uniform();
        if (!(product > 1.0f))
            return count;
    }
}

// The share of a Poisson distribution below a number, about: (1 + e^(slope (a - x) - shift))^-2
// where a is the mean. It can be turned round, and so draws candidates.
struct PoissonShare {
    float mean, slope, shift;

    explicit PoissonShare(float a)
        : mean(a),
          slope(1.43248035075540910f / std::sqrt(a - 0.12400979329415655f) + 0.00025361074907033f),
          shift(0.21096734870196546f / std::sqrt(a - 1.97381164089999420f) + 0.94201734077887530f) {
    }
    float below(float x) const {
        float root = 1.0f + std::exp(slope * (mean - x) - shift);
        return 1.0f / (root * root);
    }
    float number_at(float share) const {
        return mean - (shift + std::log(1.0f / std::sqrt(share) - 1.0f)) / slope;
    }
};

// Candidates come from the approximation above; one is taken as often as the distribution has it.
template <class Uniform>
inline unsigned poisson_by_rejection(Uniform uniform, float mean) {
    PoissonShare share(mean);
    float log_of_mean = std::log(mean);
    for (;;) {
        float x = std::floor(share.number_at(uniform()));
        float height = uniform();
        float room = (share.below(x + 1.0f) - share.below(x)) * 1.3f;
        float log_of_factorial = float(std::lgamma(double(x) + 1.0));
        float wanted = std::exp(-mean + x * log_of_mean - log_of_factorial);
        if (height * room < wanted && room >= 1e-20f)
            return unsigned(x);
    }
}

inline unsigned rounded_poisson(double normal, double mean) {
    return unsigned(std::sqrt(mean) * normal + mean + 0.5);
}

// The square histogram: the unit interval is cut into equal bins, one for each number that has a
// probability. Each bin holds its own number up to a threshold, and one other number above it: who
// has more than a bin gives to who has less.
struct PoissonTable {
    unsigned first = 0;
    std::vector<double> threshold;
    std::vector<unsigned> other;

    explicit PoissonTable(double mean) {
        std::vector<double> left = probabilities(mean);
        const size_t bins = left.size();
        const double width = 1.0 / bins;
        for (size_t i = 0; i < bins; i++) {
            threshold.push_back((i + 1) * width);
            other.push_back(i);
        }
        size_t rich = bins, poor = 0;
        for (;;) {
            while (rich > 0 && !(left[rich - 1] > width))
                rich--;
            size_t looked_at = 0;
            for (; looked_at < bins && !(left[poor] < width); looked_at++)
                poor = (poor + 1) % bins;
            if (rich == 0 || looked_at == bins)
                return;
            other[poor] = rich - 1;
            threshold[poor] = poor * width + left[poor];
            left[rich - 1] -= width - left[poor];
            left[poor] = width;
        }
    }
    // Those that a double can hold; they begin at `first`.
    std::vector<double> probabilities(double mean) {
        std::vector<double> all;
        for (unsigned k = 0;; k++) {
            double p = std::exp(-mean + k * std::log(mean) - std::lgamma(k + 1.0));
            if (p > 0)
                all.push_back(p);
            else if (k > mean)
                return all;
            else
                first = k + 1;
        }
    }
    unsigned operator()(unsigned bits) const {
        double u = bits * 0x1p-32 + 0x1p-32;
        size_t bin = size_t(u * threshold.size());
        if (bin == threshold.size())  // u is 1
            return first + other[bin - 1];
        return first + (u < threshold[bin] ? bin : other[bin]);
    }
};
}  // namespace cuda_cpu
#include "../macros_back.inc"
