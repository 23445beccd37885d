// What the programs of this folder share: every status looked at, memory that frees itself, random
// inputs, and the largest error.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>
#include <cuda_runtime.h>

// The program's number at a place of the command line, or another where none was given.
struct Arguments {
    int count;
    char** words;

    int number(int place, int otherwise) const {
        const int given = place < count ? std::atoi(words[place]) : 0;
        return given > 0 ? given : otherwise;
    }
};

// Ends the program at the first call that fails: 0 means success in every library used here.
#define CHECK(call) check_status((call), #call, __LINE__)

template <typename Status>
void check_status(Status status, const char* call, int line) {
    const int code = static_cast<int>(status);
    if (code == 0)
        return;
    std::printf("line %d: status %d from %s\n", line, code, call);
    std::exit(1);
}

// Memory on the GPU. It arrives full of poison (NaN as float), and frees itself.
template <typename T>
struct Device {
    T* data = nullptr;
    size_t size;

    explicit Device(size_t n) : size(n) {
        CHECK(cudaMalloc(&data, n * sizeof(T)));
        CHECK(cudaMemset(data, 0xff, n * sizeof(T)));
    }
    explicit Device(const std::vector<T>& host) : Device(host.size()) {
        CHECK(cudaMemcpy(data, host.data(), size * sizeof(T), cudaMemcpyHostToDevice));
    }
    Device(const Device&) = delete;
    ~Device() {
        cudaFree(data);
    }
    operator T*() const {
        return data;
    }
    std::vector<T> host() const {
        std::vector<T> copy(size);
        CHECK(cudaMemcpy(copy.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost));
        return copy;
    }
};

// n floats from -1 to 1, always the same for a seed.
inline std::vector<float> random_floats(size_t n, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(n);
    for (float& value : values)
        value = uniform(engine);
    return values;
}

// The largest |found - right|. A NaN is an infinite error.
template <typename T>
double largest_error(const std::vector<T>& found, const std::vector<double>& right) {
    if (found.size() != right.size())
        return INFINITY;
    double largest = 0;
    for (size_t i = 0; i < right.size(); i++) {
        const double value = found[i];
        const double error = std::fabs(value - right[i]);
        if (std::isnan(error))
            return INFINITY;
        largest = std::fmax(largest, error);
    }
    return largest;
}

// Prints the error, and ends the program if it is above what rounding explains.
inline void require(const char* what, double error, double allowed) {
    const bool right = error <= allowed;
    std::printf("%s: largest error %.1e, %s\n", what, error, right ? "right" : "WRONG");
    if (!right)
        std::exit(1);
}

// c (m × n) = a (m × k) b (k × n), all row-major, in float64.
inline std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b, int m,
                                   int n, int k) {
    std::vector<double> c(static_cast<size_t>(m) * n, 0.0);
    for (int i = 0; i < m; i++)
        for (int p = 0; p < k; p++) {
            const double factor = a[i * k + p];
            for (int j = 0; j < n; j++)
                c[i * n + j] += factor * b[p * n + j];
        }
    return c;
}
