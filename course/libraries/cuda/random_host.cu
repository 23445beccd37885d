// Random numbers by cuRAND, ordered from the host. random_host [count] [time]
#include <algorithm>
#include <curand.h>
#include "clock.cuh"

constexpr unsigned long long SEED = 2026;

curandGenerator_t philox(unsigned long long offset) {
    curandGenerator_t generator;
    CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    CHECK(curandSetPseudoRandomGeneratorSeed(generator, SEED));
    CHECK(curandSetGeneratorOffset(generator, offset));
    return generator;
}

// The largest distance between the distribution of values and the normal one (Kolmogorov-Smirnov).
double distance_from_normal(std::vector<float> values) {
    std::sort(values.begin(), values.end());
    double largest = 0;
    const double count = values.size();
    for (size_t i = 0; i < values.size(); i++) {
        const double normal = 0.5 * std::erfc(-values[i] / std::sqrt(2.0));
        const double below = i / count;
        const double with = (i + 1) / count;
        largest = std::fmax(largest, normal - below);
        largest = std::fmax(largest, with - normal);
    }
    return largest;
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int count = given.number(1, 20000);
    Device<float> numbers(count);

    curandGenerator_t generator = philox(0);
    CHECK(curandGenerateNormal(generator, numbers, count, 0.0f, 1.0f));
    const int tested = std::min(count, 1 << 20);
    std::vector<float> some = numbers.host();
    some.resize(tested);
    const double distance = distance_from_normal(some), allowed = 1.95 / std::sqrt(tested);
    std::printf("distance from the normal distribution: %s (1 in 1000 samples is further away)\n",
                distance < allowed ? "small enough" : "TOO LARGE");

    curandStatus_t status = curandGenerateNormal(generator, numbers, 7, 0.0f, 1.0f);
    std::printf("7 normal numbers: status %d\n", status);

    if (wants_time(argc, argv)) {
        print_time("uniform", [&] { CHECK(curandGenerateUniform(generator, numbers, count)); });
        print_time("normal", [&] { CHECK(curandGenerateNormal(generator, numbers, count, 0, 1)); });
    }
    CHECK(curandDestroyGenerator(generator));
    return distance < allowed ? 0 : 1;
}
