// cuFFT on the CPU: the transforms behind a plan.
//
// Sizes that are powers of two go through a radix-2 transform, others through Bluestein's algorithm
// (L. Bluestein, 1970) on top of it; everything is computed in double.
#pragma once
#include <complex>
#include <vector>
#include "../cuComplex.h"
#include "../device_task.h"
#include "../library_types.h"
#include "../macros_aside.inc"

typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
typedef int cufftHandle;
typedef enum cufftResult_t {
    CUFFT_SUCCESS = 0,
    CUFFT_INVALID_PLAN = 1,
    CUFFT_ALLOC_FAILED = 2,
    CUFFT_INVALID_TYPE = 3,
    CUFFT_INVALID_VALUE = 4,
    CUFFT_INTERNAL_ERROR = 5,
    CUFFT_EXEC_FAILED = 6,
    CUFFT_SETUP_FAILED = 7,
    CUFFT_INVALID_SIZE = 8,
    CUFFT_UNALIGNED_DATA = 9,
    CUFFT_INCOMPLETE_PARAMETER_LIST = 10,  // until CUDA 12, as two more
    CUFFT_INVALID_DEVICE = 11,
    CUFFT_PARSE_ERROR = 12,
    CUFFT_NO_WORKSPACE = 13,
    CUFFT_NOT_IMPLEMENTED = 14,
    CUFFT_LICENSE_ERROR = 15,
    CUFFT_NOT_SUPPORTED = 16,
    CUFFT_MISSING_DEPENDENCY = 17,
    CUFFT_NVRTC_FAILURE = 18,
    CUFFT_NVJITLINK_FAILURE = 19,
    CUFFT_NVSHMEM_FAILURE = 20
} cufftResult;
typedef enum cufftType_t {
    CUFFT_R2C = 0x2a,
    CUFFT_C2R = 0x2c,
    CUFFT_C2C = 0x29,
    CUFFT_D2Z = 0x6a,
    CUFFT_Z2D = 0x6c,
    CUFFT_Z2Z = 0x69
} cufftType;
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1

namespace cuda_cpu {
typedef std::complex<double> Complex;

// The product, without std::complex's care for infinities.
inline Complex times(Complex a, Complex b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
// exp(sign * 2 pi i * k / n)
inline Complex root(int sign, long long k, long long n) {
    double angle = 2 * 3.14159265358979323846 * double(k % n) / double(n);
    return {std::cos(angle), sign * std::sin(angle)};
}

// In place, n a power of two: reorder by reversed bits, then merge halves of 2, 4, 8 ... points.
inline void fft_radix_2(Complex* x, int n, int sign) {
    for (int i = 1, j = 0; i < n; i++) {
        int bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j |= bit;
        if (i < j)
            std::swap(x[i], x[j]);
    }
    std::vector<Complex> turn(n / 2);
    for (int k = 0; k < n / 2; k++)
        turn[k] = root(sign, k, n);
    for (int half = 1; half < n; half *= 2)
        for (int start = 0; start < n; start += 2 * half)
            for (int k = 0; k < half; k++) {
                Complex a = x[start + k], b = times(x[start + k + half], turn[k * (n / 2 / half)]);
                x[start + k] = a + b;
                x[start + k + half] = a - b;
            }
}

// Any n: jk = (j^2 + k^2 - (j - k)^2) / 2 turns the transform into a convolution, done with powers
// of two.
inline void fft(Complex* x, int n, int sign) {
    if ((n & (n - 1)) == 0)
        return fft_radix_2(x, n, sign);
    int size = 1;
    while (size < 2 * n)
        size *= 2;
    std::vector<Complex> chirp(n), a(size), b(size);
    for (long long k = 0; k < n; k++)
        chirp[k] = root(sign, k * k, 2LL * n);
    for (int k = 0; k < n; k++)
        a[k] = times(x[k], chirp[k]);
    b[0] = std::conj(chirp[0]);
    for (int k = 1; k < n; k++)
        b[k] = b[size - k] = std::conj(chirp[k]);
    fft_radix_2(a.data(), size, -1);
    fft_radix_2(b.data(), size, -1);
    for (int k = 0; k < size; k++)
        a[k] = times(a[k], b[k]);
    fft_radix_2(a.data(), size, 1);
    for (int k = 0; k < n; k++)
        x[k] = times(a[k], chirp[k]) / double(size);
}

// One side's places in memory: element (i, j, k) of batch b lies at b * distance + ((i * e1 + j) *
// e2 + k) * stride.
struct FftLayout {
    int e1 = 1, e2 = 1;
    long stride = 1, distance = 0;
    long at(int i, int j, int k) const {
        return ((long(i) * e1 + j) * e2 + k) * stride;
    }
};
struct FftPlan {
    int n[3] = {1, 1, 1};  // the last is the fastest
    int rank = 1, batch = 1;
    bool dense = true;  // no strides were given
    cufftType type;
    FftLayout in, out;
    cudaStream_t stream = nullptr;
    bool made = false, live = true;
    bool own_work_area = true;  // else the caller gives one
    void* work_area = nullptr;

    size_t work_bytes() const {
        size_t points = size_t(n[0]) * n[1] * n[2] * batch;
        return points * (type & 0x40 ? sizeof(cufftDoubleComplex) : sizeof(cufftComplex));
    }
};
inline std::vector<FftPlan>& fft_plans() {
    static std::vector<FftPlan> plans(1);
    return plans;
}
inline FftPlan* find_plan(cufftHandle h) {
    auto& plans = fft_plans();
    return h > 0 && h < (int)plans.size() && plans[h].live ? &plans[h] : nullptr;
}

// All dimensions in turn over a dense array of n[0] * n[1] * n[2] points.
inline void fft_dimensions(std::vector<Complex>& x, const int n[3], int sign) {
    long step = 1;
    std::vector<Complex> line;
    for (int d = 2; d >= 0; step *= n[d--]) {
        if (n[d] == 1)
            continue;
        line.resize(n[d]);
        for (long start = 0; start < (long)x.size(); start++) {
            if (start / step % n[d] != 0)
                continue;
            for (int k = 0; k < n[d]; k++)
                line[k] = x[start + k * step];
            fft(line.data(), n[d], sign);
            for (int k = 0; k < n[d]; k++)
                x[start + k * step] = line[k];
        }
    }
}

template <class T>
inline Complex load(const T& v) {
    return Complex(v.x, v.y);
}
inline Complex load(float v) {
    return v;
}
inline Complex load(double v) {
    return v;
}
template <class T>
inline void store(T& to, Complex v) {
    to = {decltype(to.x)(v.real()), decltype(to.y)(v.imag())};
}
inline void store(float& to, Complex v) {
    to = float(v.real());
}
inline void store(double& to, Complex v) {
    to = v.real();
}

template <class In, class Out>
inline cufftResult fft_execute(cufftHandle h, cufftType type, const In* in, Out* out, int sign) {
    FftPlan* found = find_plan(h);
    if (!found || !found->made)
        return CUFFT_INVALID_PLAN;
    if (!found->own_work_area && !found->work_area) {
        fprintf(stderr, "cufftExec: the plan was told to allocate nothing, and has no work area\n");
        return CUFFT_INTERNAL_ERROR;
    }
    if (found->type != type)
        return CUFFT_INVALID_TYPE;
    if (!in || !out || (sign != 1 && sign != -1))
        return CUFFT_INVALID_VALUE;
    FftPlan plan = *found;
    bool half_in = type == CUFFT_C2R || type == CUFFT_Z2D,
         half_out = type == CUFFT_R2C || type == CUFFT_D2Z;
    if (plan.dense && (half_in || half_out) && (const void*)in == (const void*)out) {
        FftLayout& real =
            half_in ? plan.out
                    : plan.in;  // in place, rows of reals are padded to the rows of frequencies
        real.e2 = 2 * (plan.n[2] / 2 + 1);
        real.distance = (long)plan.n[0] * plan.n[1] * real.e2;
    }
    cudaError_t e = device_task(plan.stream, plan.batch, [=](long b) {
        const int *n = plan.n, half = n[2] / 2 + 1;
        const In* from = in + b * plan.in.distance;
        Out* to = out + b * plan.out.distance;
        std::vector<Complex> x((long)n[0] * n[1] * n[2]);
        auto point = [&](int i, int j, int k) -> Complex& {
            return x[(long(i) * n[1] + j) * n[2] + k];
        };
        for (int i = 0; i < n[0]; i++)
            for (int j = 0; j < n[1]; j++)
                for (int k = 0; k < n[2]; k++)
                    if (half_in && k >= half)  // the other half follows from symmetry
                        point(i, j, k) = std::conj(
                            load(from[plan.in.at((n[0] - i) % n[0], (n[1] - j) % n[1], n[2] - k)]));
                    else
                        point(i, j, k) = load(from[plan.in.at(i, j, k)]);
        fft_dimensions(x, n, sign);
        for (int i = 0; i < n[0]; i++)
            for (int j = 0; j < n[1]; j++)
                for (int k = 0; k < (half_out ? half : n[2]); k++)
                    store(to[plan.out.at(i, j, k)], point(i, j, k));
    });
    return e == cudaSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}
}  // namespace cuda_cpu
#include "../macros_back.inc"
