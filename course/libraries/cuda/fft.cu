// Real rows to their spectra and back by cuFFT. fft [n rows] [time]
#include <complex>
#include <cufft.h>
#include "clock.cuh"

// The spectrum of one row by its definition, in float64: n / 2 + 1 numbers.
std::vector<std::complex<double>> spectrum(const float* row, int n) {
    std::vector<std::complex<double>> bins(n / 2 + 1);
    for (int f = 0; f <= n / 2; f++)
        for (int t = 0; t < n; t++)
            bins[f] += double(row[t]) * std::polar(1.0, -2 * M_PI * f * t / n);
    return bins;
}

// Rows of n reals to rows of n / 2 + 1 complex numbers, and back: a plan for each direction.
struct Transform {
    cufftHandle forward, backward;

    Transform(int n, int rows) {
        CHECK(cufftPlan1d(&forward, n, CUFFT_R2C, rows));
        CHECK(cufftPlan1d(&backward, n, CUFFT_C2R, rows));
    }
    void operator()(float2* bins, float* x) {
        CHECK(cufftExecR2C(forward, x, bins));
    }
    void back(float* x, float2* bins) {
        CHECK(cufftExecC2R(backward, bins, x));  // may overwrite the bins
    }
    ~Transform() {
        cufftDestroy(forward);
        cufftDestroy(backward);
    }
};

// The largest error of the first and the last row's spectrum.
double error_of(const std::vector<float2>& found, const std::vector<float>& x, int n, int rows) {
    const int bins = n / 2 + 1;
    double largest = 0;
    for (int row : {0, rows - 1}) {
        const auto right = spectrum(x.data() + size_t(row) * n, n);
        for (int f = 0; f < bins; f++) {
            const float2 bin = found[size_t(row) * bins + f];
            const std::complex<double> value(bin.x, bin.y);
            const double error = std::abs(value - right[f]);
            largest = error <= largest ? largest : error;
        }
    }
    return largest;
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int n = given.number(1, 12);
    const int rows = given.number(2, 3);
    const std::vector<float> x = random_floats(n * rows, 1);
    Device<float> d_x(x), d_back(n * rows);
    Device<float2> d_bins((n / 2 + 1) * rows);  // the others are complex conjugates of these

    Transform transform(n, rows);
    transform(d_bins, d_x);
    require("spectrum", error_of(d_bins.host(), x, n, rows), 2e-6 * n);

    transform.back(d_back, d_bins);
    std::vector<double> scaled(x.begin(), x.end());
    for (double& value : scaled)
        value *= n;
    require("there and back is n times as large", largest_error(d_back.host(), scaled), 1e-5 * n);

    if (wants_time(argc, argv))
        print_time("fft", [&] { transform(d_bins, d_x); });
}
