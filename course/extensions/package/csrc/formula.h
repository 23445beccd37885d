// The polynomial a x^2 + b x + c and its derivative: the one place where they stand.
#pragma once

#ifdef __CUDACC__
#define ANYWHERE __host__ __device__
#else
#define ANYWHERE
#endif

// 16-bit numbers are computed with in float32.
template <typename Number>
struct Computed {
    using type = float;
};

template <>
struct Computed<double> {
    using type = double;
};

template <typename Real>
ANYWHERE inline Real value_of(Real x, Real a, Real b, Real c) {
    return (a * x + b) * x + c;
}

template <typename Real>
ANYWHERE inline Real slope_of(Real x, Real a, Real b) {
    return 2 * a * x + b;
}
