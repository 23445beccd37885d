// π by throwing points at a square: cuRAND inside a kernel. pi [points of a thread]
#include <curand_kernel.h>
#include "helpers.cuh"

constexpr unsigned long long SEED = 2026;
constexpr int BLOCKS = 8, THREADS = 64;

// hits: of each thread's points, how many lie within the circle's quarter.
__global__ void throw_points(unsigned* hits, int points) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(SEED, thread, 0, &state);  // a sequence of its own for each thread
    unsigned inside = 0;
    for (int i = 0; i < points; i++) {
        const float x = curand_uniform(&state), y = curand_uniform(&state);
        inside += x * x + y * y <= 1;
    }
    hits[thread] = inside;
}

// The first numbers of one sequence, as they are: 32 random bits each.
__global__ void first_numbers(unsigned* numbers, int count, unsigned long long sequence) {
    curandStatePhilox4_32_10_t state;
    curand_init(SEED, sequence, 0, &state);
    for (int i = 0; i < count; i++)
        numbers[i] = curand(&state);
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int points = given.number(1, 256);
    Device<unsigned> hits(BLOCKS * THREADS);
    throw_points<<<BLOCKS, THREADS>>>(hits, points);
    CHECK(cudaGetLastError());

    double inside = 0;
    for (unsigned of_thread : hits.host())
        inside += of_thread;
    const double thrown = double(points) * BLOCKS * THREADS;
    const double found = 4 * inside / thrown;
    const double pi = std::acos(-1.0);
    const double deviation = std::sqrt(pi * (4 - pi) / thrown);  // of a binomial distribution
    std::printf("%.0f points: pi is about %.4f\n", thrown, found);
    Device<unsigned> numbers(3);
    first_numbers<<<1, 1>>>(numbers, 3, 1);
    CHECK(cudaGetLastError());
    std::printf("thread 1's sequence:");
    for (unsigned number : numbers.host())
        std::printf(" %u", number);
    std::printf("\n");
    require("pi", std::fabs(found - pi), 4 * deviation);
}
