// Mathematical functions and intrinsics. The fast versions (__expf ...) are the plain ones: a GPU's
// differ in the last digits. Names that the C library declares for itself (__expf) are macros.
#pragma once
#include <cstdint>
#include <cstring>
// Bessel's functions and their like come with lib/cmath, to who includes that: here they would be
// instantiated anew for every program.
#pragma push_macro("_GLIBCXX_USE_STD_SPEC_FUNCS")
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <math.h>
#include <cmath>
#pragma pop_macro("_GLIBCXX_USE_STD_SPEC_FUNCS")
#include "types.h"

#define CUDA_CPU_MIN_MAX(A, B, R)         \
    inline constexpr R min(A a, B b) {    \
        return (R)b < (R)a ? (R)b : (R)a; \
    }                                     \
    inline constexpr R max(A a, B b) {    \
        return (R)a < (R)b ? (R)b : (R)a; \
    }
#define CUDA_CPU_MIXED(A, B, R) CUDA_CPU_MIN_MAX(A, B, R) CUDA_CPU_MIN_MAX(B, A, R)
CUDA_CPU_MIN_MAX(int, int, int)
CUDA_CPU_MIN_MAX(unsigned, unsigned, unsigned)
CUDA_CPU_MIN_MAX(long, long, long)
CUDA_CPU_MIN_MAX(unsigned long, unsigned long, unsigned long)
CUDA_CPU_MIN_MAX(long long, long long, long long)
CUDA_CPU_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
CUDA_CPU_MIXED(int, unsigned, unsigned)
CUDA_CPU_MIXED(long, unsigned long, unsigned long)
CUDA_CPU_MIXED(long long, unsigned long long, unsigned long long)
#undef CUDA_CPU_MIN_MAX
#undef CUDA_CPU_MIXED
inline float min(float a, float b) {
    return ::fminf(a, b);
}
inline float max(float a, float b) {
    return ::fmaxf(a, b);
}
inline double min(double a, double b) {
    return ::fmin(a, b);
}
inline double max(double a, double b) {
    return ::fmax(a, b);
}
inline double min(float a, double b) {
    return ::fmin(double(a), b);
}
inline double min(double a, float b) {
    return ::fmin(a, double(b));
}
inline double max(float a, double b) {
    return ::fmax(double(a), b);
}
inline double max(double a, float b) {
    return ::fmax(a, double(b));
}
inline unsigned umin(unsigned a, unsigned b) {
    return a < b ? a : b;
}
inline unsigned umax(unsigned a, unsigned b) {
    return a < b ? b : a;
}
inline long long llmin(long long a, long long b) {
    return a < b ? a : b;
}
inline long long llmax(long long a, long long b) {
    return a < b ? b : a;
}

inline float rsqrtf(float x) {
    return 1.0f / ::sqrtf(x);
}
inline double rsqrt(double x) {
    return 1.0 / ::sqrt(x);
}
inline float rsqrt(float x) {
    return 1.0f / ::sqrtf(x);
}
inline float rcbrtf(float x) {
    return 1.0f / ::cbrtf(x);
}
inline double rcbrt(double x) {
    return 1.0 / ::cbrt(x);
}
inline double sinpi(double x) {
    return ::sin(M_PI * ::remainder(x, 2.0));
}
inline double cospi(double x) {
    return ::cos(M_PI * ::remainder(x, 2.0));
}
inline float sinpif(float x) {
    return float(::sin(M_PI * ::remainder(double(x), 2.0)));
}
inline float cospif(float x) {
    return float(::cos(M_PI * ::remainder(double(x), 2.0)));
}
inline void sincospi(double x, double* s, double* c) {
    *s = sinpi(x);
    *c = cospi(x);
}
inline void sincospif(float x, float* s, float* c) {
    *s = sinpif(x);
    *c = cospif(x);
}
#ifdef __APPLE__
inline void sincosf(float x, float* s, float* c) {
    *s = ::sinf(x);
    *c = ::cosf(x);
}
inline void sincos(double x, double* s, double* c) {
    *s = ::sin(x);
    *c = ::cos(x);
}
inline float exp10f(float x) {
    return ::powf(10.0f, x);
}
inline double exp10(double x) {
    return ::pow(10.0, x);
}
#endif
inline void sincos(float x, float* s, float* c) {
    *s = ::sinf(x);
    *c = ::cosf(x);
}
inline double normcdf(double x) {
    return 0.5 * ::erfc(-x * M_SQRT1_2);
}
inline float normcdff(float x) {
    return float(normcdf(double(x)));
}
inline double erfcx(double x) {
    return x < 26 ? ::exp(x * x) * ::erfc(x) : 1 / (x * 1.7724538509055160273);
}
inline float erfcxf(float x) {
    return float(erfcx(double(x)));
}
namespace cuda_cpu {
double inverse_normal(double p);  // the quantile function of the normal distribution
}
inline double normcdfinv(double p) {
    return ::cuda_cpu::inverse_normal(p);
}
inline float normcdfinvf(float p) {
    return float(::cuda_cpu::inverse_normal(p));
}
inline double erfinv(double x) {
    return ::cuda_cpu::inverse_normal((x + 1) / 2) * M_SQRT1_2;
}
inline float erfinvf(float x) {
    return float(erfinv(double(x)));
}
inline double erfcinv(double x) {
    return -::cuda_cpu::inverse_normal(x / 2) * M_SQRT1_2;
}
inline float erfcinvf(float x) {
    return float(erfcinv(double(x)));
}
inline double norm3d(double a, double b, double c) {
    return ::sqrt(a * a + b * b + c * c);
}
inline float norm3df(float a, float b, float c) {
    return float(norm3d(a, b, c));
}
inline double rnorm3d(double a, double b, double c) {
    return 1 / norm3d(a, b, c);
}
inline float rnorm3df(float a, float b, float c) {
    return float(rnorm3d(a, b, c));
}
inline double norm4d(double a, double b, double c, double d) {
    return ::sqrt(a * a + b * b + c * c + d * d);
}
inline float norm4df(float a, float b, float c, float d) {
    return float(norm4d(a, b, c, d));
}
inline double norm(int n, const double* v) {
    double s = 0;
    for (int i = 0; i < n; ++i)
        s += v[i] * v[i];
    return ::sqrt(s);
}
inline float normf(int n, const float* v) {
    double s = 0;
    for (int i = 0; i < n; ++i)
        s += double(v[i]) * v[i];
    return float(::sqrt(s));
}
inline double rnorm(int n, const double* v) {
    return 1 / norm(n, v);
}
inline float rnormf(int n, const float* v) {
    return 1 / normf(n, v);
}
inline double rhypot(double a, double b) {
    return 1 / ::hypot(a, b);
}
inline float rhypotf(float a, float b) {
    return 1 / ::hypotf(a, b);
}
inline float fdividef(float a, float b) {
    return a / b;
}

#define __expf(x) (::expf(x))
#define __exp10f(x) (::exp10f(x))
#define __logf(x) (::logf(x))
#define __log2f(x) (::log2f(x))
#define __log10f(x) (::log10f(x))
#define __sinf(x) (::sinf(x))
#define __cosf(x) (::cosf(x))
#define __tanf(x) (::tanf(x))
#define __powf(x, y) (::powf(x, y))
#define __sincosf(x, s, c) (::sincosf(x, s, c))
#define __tanhf(x) (::tanhf(x))
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float __saturatef(float x) {
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
inline float __frsqrt_rn(float x) {
    return 1.0f / ::sqrtf(x);
}
// The four directions of rounding. A result is first computed in double and, where that is not
// exact, moved one step of double towards the true value, which decides the direction without
// changing anything else.
namespace cuda_cpu {
enum RoundMode { round_rn, round_rz, round_ru, round_rd };
inline double towards(double x, double error) {
    bool exact = error == 0 || error != error;  // NaN: of an infinite operand
    unsigned long long bits;
    memcpy(&bits, &x, sizeof x);
    // An odd one is no float and no middle between two; the step from it could lead to one.
    bool odd = bits & 1;
    return exact || odd || x != x || ::isinf(x) ? x
                                                : ::nextafter(x, error > 0 ? INFINITY : -INFINITY);
}
inline double sum(double a, double b) {  // with the error of the addition
    double s = a + b, v = s - a;
    return towards(s, (a - (s - v)) + (b - v));
}
inline double quotient(double a, double b) {
    double q = a / b, rest = ::fma(-q, b, a);
    return towards(q, b > 0 ? rest : -rest);
}
inline double root(double a) {
    double r = ::sqrt(a);
    return towards(r, ::fma(-r, r, a));
}
inline float narrow(double exact, RoundMode mode) {
    float r = float(exact);
    if (double(r) == exact || mode == round_rn || r != r)
        return r;
    bool up = mode == round_ru || (mode == round_rz && exact < 0);
    if (up && double(r) < exact)
        return ::nextafterf(r, INFINITY);
    if (!up && double(r) > exact)
        return ::nextafterf(r, -INFINITY);
    return r;
}
// x is the nearest, the true value is x + error. exact: an operand was infinite, or divided by 0.
inline double narrow_double(double x, double error, RoundMode mode, bool exact = false) {
    bool up = mode == round_ru || (mode == round_rz && x < 0);
    return exact || mode == round_rn || x != x || (up ? error <= 0 : error >= 0)
               ? x
               : ::nextafter(x, up ? INFINITY : -INFINITY);
}
inline bool infinite(double a, double b = 0) {
    return ::isinf(a) || ::isinf(b);
}
inline double sum_error(double a, double b) {
    double s = a + b, v = s - a;
    return (a - (s - v)) + (b - v);
}
inline double rounded(double x, RoundMode mode) {
    return mode == round_rn   ? ::rint(x)
           : mode == round_rz ? ::trunc(x)
           : mode == round_ru ? ::ceil(x)
                              : ::floor(x);
}
template <class I>
inline I to_integer(double x, RoundMode mode) {  // out of range: the nearest end; NaN: 0 (32 bits)
    if (x != x)
        return sizeof(I) == 8 ? I(1ull << 63) : I(0);
    double r = rounded(x, mode);
    const I lowest = I(-1) < I(0) ? I(1ull << (sizeof(I) * 8 - 1)) : I(0), highest = I(~lowest);
    return r <= double(lowest) ? lowest : r >= double(highest) ? highest : I(r);
}
}  // namespace cuda_cpu
#define CUDA_CPU_ROUNDED(m)                                                                        \
    inline float __fadd_##m(float a, float b) {                                                    \
        return cuda_cpu::narrow(cuda_cpu::sum(a, b), cuda_cpu::round_##m);                         \
    }                                                                                              \
    inline float __fsub_##m(float a, float b) {                                                    \
        return cuda_cpu::narrow(cuda_cpu::sum(a, -double(b)), cuda_cpu::round_##m);                \
    }                                                                                              \
    inline float __fmul_##m(float a, float b) {                                                    \
        return cuda_cpu::narrow(double(a) * b, cuda_cpu::round_##m);                               \
    }                                                                                              \
    inline float __fdiv_##m(float a, float b) {                                                    \
        return cuda_cpu::narrow(cuda_cpu::quotient(a, b), cuda_cpu::round_##m);                    \
    }                                                                                              \
    inline float __frcp_##m(float a) {                                                             \
        return cuda_cpu::narrow(cuda_cpu::quotient(1, a), cuda_cpu::round_##m);                    \
    }                                                                                              \
    inline float __fsqrt_##m(float a) {                                                            \
        return cuda_cpu::narrow(cuda_cpu::root(a), cuda_cpu::round_##m);                           \
    }                                                                                              \
    inline float __fmaf_##m(float a, float b, float c) {                                           \
        return cuda_cpu::narrow(cuda_cpu::sum(double(a) * b, c), cuda_cpu::round_##m);             \
    }                                                                                              \
    inline double __dadd_##m(double a, double b) {                                                 \
        return cuda_cpu::narrow_double(a + b, cuda_cpu::sum_error(a, b), cuda_cpu::round_##m,      \
                                       cuda_cpu::infinite(a, b));                                  \
    }                                                                                              \
    inline double __dsub_##m(double a, double b) {                                                 \
        return cuda_cpu::narrow_double(a - b, cuda_cpu::sum_error(a, -b), cuda_cpu::round_##m,     \
                                       cuda_cpu::infinite(a, b));                                  \
    }                                                                                              \
    inline double __dmul_##m(double a, double b) {                                                 \
        return cuda_cpu::narrow_double(a * b, ::fma(a, b, -(a * b)), cuda_cpu::round_##m,          \
                                       cuda_cpu::infinite(a, b));                                  \
    }                                                                                              \
    inline double __ddiv_##m(double a, double b) {                                                 \
        double q = a / b, rest = ::fma(-q, b, a);                                                  \
        return cuda_cpu::narrow_double(q, b > 0 ? rest : -rest, cuda_cpu::round_##m,               \
                                       cuda_cpu::infinite(a, b) || b == 0);                        \
    }                                                                                              \
    inline double __drcp_##m(double a) {                                                           \
        return __ddiv_##m(1.0, a);                                                                 \
    }                                                                                              \
    inline double __dsqrt_##m(double a) {                                                          \
        double r = ::sqrt(a);                                                                      \
        return cuda_cpu::narrow_double(r, ::fma(-r, r, a), cuda_cpu::round_##m,                    \
                                       cuda_cpu::infinite(a));                                     \
    }                                                                                              \
    inline float __double2float_##m(double a) {                                                    \
        return cuda_cpu::narrow(a, cuda_cpu::round_##m);                                           \
    }                                                                                              \
    inline float __int2float_##m(int a) {                                                          \
        return cuda_cpu::narrow(double(a), cuda_cpu::round_##m);                                   \
    }                                                                                              \
    inline float __uint2float_##m(unsigned a) {                                                    \
        return cuda_cpu::narrow(double(a), cuda_cpu::round_##m);                                   \
    }                                                                                              \
    inline double __ll2double_##m(long long a) {                                                   \
        double d = double(a);                                                                      \
        return cuda_cpu::narrow_double(d, double((__int128)a - (__int128)d), cuda_cpu::round_##m); \
    }                                                                                              \
    inline double __ull2double_##m(unsigned long long a) {                                         \
        double d = double(a);                                                                      \
        return cuda_cpu::narrow_double(d, double((__int128)a - (__int128)d), cuda_cpu::round_##m); \
    }                                                                                              \
    inline float __ll2float_##m(long long a) {                                                     \
        double d = double(a);                                                                      \
        return cuda_cpu::narrow(cuda_cpu::towards(d, double((__int128)a - (__int128)d)),           \
                                cuda_cpu::round_##m);                                              \
    }                                                                                              \
    inline float __ull2float_##m(unsigned long long a) {                                           \
        double d = double(a);                                                                      \
        return cuda_cpu::narrow(cuda_cpu::towards(d, double((__int128)a - (__int128)d)),           \
                                cuda_cpu::round_##m);                                              \
    }                                                                                              \
    inline int __float2int_##m(float a) {                                                          \
        return cuda_cpu::to_integer<int>(a, cuda_cpu::round_##m);                                  \
    }                                                                                              \
    inline int __double2int_##m(double a) {                                                        \
        return cuda_cpu::to_integer<int>(a, cuda_cpu::round_##m);                                  \
    }                                                                                              \
    inline unsigned __float2uint_##m(float a) {                                                    \
        return cuda_cpu::to_integer<unsigned>(a, cuda_cpu::round_##m);                             \
    }                                                                                              \
    inline unsigned __double2uint_##m(double a) {                                                  \
        return cuda_cpu::to_integer<unsigned>(a, cuda_cpu::round_##m);                             \
    }                                                                                              \
    inline long long __float2ll_##m(float a) {                                                     \
        return cuda_cpu::to_integer<long long>(a, cuda_cpu::round_##m);                            \
    }                                                                                              \
    inline long long __double2ll_##m(double a) {                                                   \
        return cuda_cpu::to_integer<long long>(a, cuda_cpu::round_##m);                            \
    }                                                                                              \
    inline unsigned long long __float2ull_##m(float a) {                                           \
        return cuda_cpu::to_integer<unsigned long long>(a, cuda_cpu::round_##m);                   \
    }                                                                                              \
    inline unsigned long long __double2ull_##m(double a) {                                         \
        return cuda_cpu::to_integer<unsigned long long>(a, cuda_cpu::round_##m);                   \
    }
CUDA_CPU_ROUNDED(rn)
CUDA_CPU_ROUNDED(rz)
CUDA_CPU_ROUNDED(ru)
CUDA_CPU_ROUNDED(rd)
#undef CUDA_CPU_ROUNDED
inline double __fma_rn(double a, double b, double c) {
    return ::fma(a, b, c);
}
inline double __fma_rz(double a, double b, double c) {
    return ::fma(a, b, c);
}
inline double __int2double_rn(int a) {
    return a;
}
inline double __uint2double_rn(unsigned a) {
    return a;
}

namespace cuda_cpu {
template <class To, class From>
inline To bits(From v) {
    static_assert(sizeof(To) == sizeof(From), "");
    To r;
    std::memcpy(&r, &v, sizeof r);
    return r;
}
}  // namespace cuda_cpu
inline int __float_as_int(float x) {
    return cuda_cpu::bits<int>(x);
}
inline unsigned __float_as_uint(float x) {
    return cuda_cpu::bits<unsigned>(x);
}
inline float __int_as_float(int x) {
    return cuda_cpu::bits<float>(x);
}
inline float __uint_as_float(unsigned x) {
    return cuda_cpu::bits<float>(x);
}
inline long long __double_as_longlong(double x) {
    return cuda_cpu::bits<long long>(x);
}
inline double __longlong_as_double(long long x) {
    return cuda_cpu::bits<double>(x);
}
inline int __double2hiint(double x) {
    return int(cuda_cpu::bits<long long>(x) >> 32);
}
inline int __double2loint(double x) {
    return int(cuda_cpu::bits<long long>(x));
}
inline double __hiloint2double(int hi, int lo) {
    return cuda_cpu::bits<double>((unsigned long long)(unsigned)hi << 32 | (unsigned)lo);
}

inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
inline int __clz(int x) {
    return x ? __builtin_clz(unsigned(x)) : 32;
}
inline int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
inline int __fns(unsigned mask, unsigned base, int offset) {  // the offset-th set bit from base on
    int step = offset < 0 ? -1 : 1, left = offset < 0 ? -offset : offset;
    if (offset == 0)
        return mask >> base & 1 ? int(base) : -1;
    for (int i = int(base); i >= 0 && i < 32; i += step)
        if ((mask >> i & 1) && --left == 0)
            return i;
    return -1;
}
inline unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
    unsigned long long v = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; ++i) {
        unsigned selector = s >> (4 * i) & 7;  // prmt has a fourth bit, this function has not
        r |= (unsigned(v >> (8 * selector)) & 255) << (8 * i);
    }
    return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
    return unsigned(((unsigned long long)hi << 32 | lo) << (n & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
    return unsigned(((unsigned long long)hi << 32 | lo) >> (n & 31));
}
inline int __mul24(int a, int b) {
    return (a << 8 >> 8) * (b << 8 >> 8);
}
inline unsigned __umul24(unsigned a, unsigned b) {
    return (a & 0xffffffu) * (b & 0xffffffu);
}
inline int __mulhi(int a, int b) {
    return int((long long)a * b >> 32);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return unsigned((unsigned long long)a * b >> 32);
}
inline long long __mul64hi(long long a, long long b) {
    return (long long)((__int128)a * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned c) {
    return (a < b ? unsigned(b) - unsigned(a) : unsigned(a) - unsigned(b)) + c;
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) {
    return (a < b ? b - a : a - b) + c;
}
inline int __hadd(int a, int b) {
    return int(((long long)a + b) >> 1);
}
inline int __rhadd(int a, int b) {
    return int(((long long)a + b + 1) >> 1);
}
inline unsigned __uhadd(unsigned a, unsigned b) {
    return unsigned(((unsigned long long)a + b) >> 1);
}
inline unsigned __urhadd(unsigned a, unsigned b) {
    return unsigned(((unsigned long long)a + b + 1) >> 1);
}
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i)
        c += int((signed char)(a >> (8 * i))) * int((signed char)(b >> (8 * i)));
    return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i)
        c += (a >> (8 * i) & 255) * (b >> (8 * i) & 255);
    return c;
}
inline int __dp4a(char4 a, char4 b, int c) {
    return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
    return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
// Two numbers of 16 bits with two of 8: the lower ones of four, or the upper ones.
inline int __dp2a_lo(short2 a, char4 b, int c) {
    return c + a.x * b.x + a.y * b.y;
}
inline unsigned __dp2a_lo(ushort2 a, uchar4 b, unsigned c) {
    return c + unsigned(a.x) * b.x + unsigned(a.y) * b.y;
}
inline int __dp2a_hi(short2 a, char4 b, int c) {
    return c + a.x * b.z + a.y * b.w;
}
inline unsigned __dp2a_hi(ushort2 a, uchar4 b, unsigned c) {
    return c + unsigned(a.x) * b.z + unsigned(a.y) * b.w;
}
inline int __dp2a_lo(int a, int b, int c) {
    return c + (short)a * (signed char)b + (short)(a >> 16) * (signed char)(b >> 8);
}
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
    return c + (a & 65535) * (b & 255) + (a >> 16) * (b >> 8 & 255);
}
inline int __dp2a_hi(int a, int b, int c) {
    return __dp2a_lo(a, b >> 16, c);
}
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) {
    return __dp2a_lo(a, b >> 16, c);
}

// SIMD within a word: two halves or four bytes at a time. No templates: the compiler would
// instantiate them anew for every program.
#define CUDA_CPU_EACH(name, bits, expression)                    \
    inline unsigned name(unsigned a, unsigned b) {               \
        constexpr int n = bits;                                  \
        constexpr unsigned mask = (1u << n) - 1;                 \
        unsigned r = 0;                                          \
        for (int i = 0; i < 32; i += n) {                        \
            const unsigned x = a >> i & mask, y = b >> i & mask; \
            r |= (unsigned(expression) & mask) << i;             \
        }                                                        \
        return r;                                                \
    }
#define CUDA_CPU_SIMD(name, expression)    \
    CUDA_CPU_EACH(name##2, 16, expression) \
    CUDA_CPU_EACH(name##4, 8, expression)
#define CUDA_CPU_SIGNED(v) (int(v << (32 - n)) >> (32 - n))
CUDA_CPU_SIMD(__vadd, x + y)
CUDA_CPU_SIMD(__vsub, x - y)
CUDA_CPU_SIMD(__vavgu, (x + y + 1) / 2)
CUDA_CPU_SIMD(__vhaddu, (x + y) / 2)
CUDA_CPU_SIMD(__vmaxu, x < y ? y : x)
CUDA_CPU_SIMD(__vminu, y < x ? y : x)
CUDA_CPU_SIMD(__vmaxs, CUDA_CPU_SIGNED(x) < CUDA_CPU_SIGNED(y) ? y : x)
CUDA_CPU_SIMD(__vmins, CUDA_CPU_SIGNED(y) < CUDA_CPU_SIGNED(x) ? y : x)
CUDA_CPU_SIMD(__vabsdiffu, x < y ? y - x : x - y)
CUDA_CPU_SIMD(__vabsdiffs, CUDA_CPU_SIGNED(x) < CUDA_CPU_SIGNED(y) ? y - x : x - y)
CUDA_CPU_SIMD(__vaddus, (x + y) >> n ? ~0u : x + y)
CUDA_CPU_SIMD(__vsubus, x < y ? 0u : x - y)
CUDA_CPU_SIMD(__vcmpeq, x == y ? ~0u : 0u)
CUDA_CPU_SIMD(__vcmpne, x != y ? ~0u : 0u)
CUDA_CPU_SIMD(__vcmpltu, x < y ? ~0u : 0u)
CUDA_CPU_SIMD(__vcmpleu, x <= y ? ~0u : 0u)
CUDA_CPU_SIMD(__vcmpgtu, x > y ? ~0u : 0u)
CUDA_CPU_SIMD(__vcmpgeu, x >= y ? ~0u : 0u)
CUDA_CPU_SIMD(__vcmplts, CUDA_CPU_SIGNED(x) < CUDA_CPU_SIGNED(y) ? ~0u : 0u)
CUDA_CPU_SIMD(__vcmpgts, CUDA_CPU_SIGNED(x) > CUDA_CPU_SIGNED(y) ? ~0u : 0u)
CUDA_CPU_SIMD(__vcmples, CUDA_CPU_SIGNED(x) <= CUDA_CPU_SIGNED(y) ? ~0u : 0u)
CUDA_CPU_SIMD(__vcmpges, CUDA_CPU_SIGNED(x) >= CUDA_CPU_SIGNED(y) ? ~0u : 0u)
CUDA_CPU_SIMD(__vseteq, x == y)
CUDA_CPU_SIMD(__vsetne, x != y)
CUDA_CPU_SIMD(__vsetltu, x < y)
CUDA_CPU_SIMD(__vsetleu, x <= y)
CUDA_CPU_SIMD(__vsetgtu, x > y)
CUDA_CPU_SIMD(__vsetgeu, x >= y)
CUDA_CPU_SIMD(__vsetlts, CUDA_CPU_SIGNED(x) < CUDA_CPU_SIGNED(y))
CUDA_CPU_SIMD(__vsetles, CUDA_CPU_SIGNED(x) <= CUDA_CPU_SIGNED(y))
CUDA_CPU_SIMD(__vsetgts, CUDA_CPU_SIGNED(x) > CUDA_CPU_SIGNED(y))
CUDA_CPU_SIMD(__vsetges, CUDA_CPU_SIGNED(x) >= CUDA_CPU_SIGNED(y))
inline int cuda_cpu_within_bits(int v, int n) {  // saturated
    const int most = (1 << (n - 1)) - 1;
    return v > most ? most : v < -most - 1 ? -most - 1 : v;
}
CUDA_CPU_SIMD(__vaddss, cuda_cpu_within_bits(CUDA_CPU_SIGNED(x) + CUDA_CPU_SIGNED(y), n))
CUDA_CPU_SIMD(__vsubss, cuda_cpu_within_bits(CUDA_CPU_SIGNED(x) - CUDA_CPU_SIGNED(y), n))
inline int cuda_cpu_rounded_half(int v) {  // vavrg of PTX: towards what is farther from zero
    return (v + (v >= 0)) >> 1;
}
CUDA_CPU_SIMD(__vavgs, cuda_cpu_rounded_half(CUDA_CPU_SIGNED(x) + CUDA_CPU_SIGNED(y)))
#undef CUDA_CPU_SIMD
#undef CUDA_CPU_EACH
#undef CUDA_CPU_SIGNED
inline unsigned __vnegss4(unsigned a) {
    return __vsubss4(0, a);
}
inline unsigned __vnegss2(unsigned a) {
    return __vsubss2(0, a);
}
inline unsigned __vabsss4(unsigned a) {
    return __vmaxs4(a, __vnegss4(a));
}
inline unsigned __vabsss2(unsigned a) {
    return __vmaxs2(a, __vnegss2(a));
}
inline unsigned __vsadu2(unsigned a, unsigned b) {
    unsigned d = __vabsdiffu2(a, b);
    return (d & 65535) + (d >> 16);
}
inline unsigned __vsads2(unsigned a, unsigned b) {
    unsigned d = __vabsdiffs2(a, b);
    return (d & 65535) + (d >> 16);
}
inline unsigned __vneg4(unsigned a) {
    return __vsub4(0, a);
}
inline unsigned __vneg2(unsigned a) {
    return __vsub2(0, a);
}
inline unsigned __vabs4(unsigned a) {
    return __vabsdiffs4(a, 0);
}
inline unsigned __vabs2(unsigned a) {
    return __vabsdiffs2(a, 0);
}
inline unsigned __vsads4(unsigned a, unsigned b) {
    unsigned d = __vabsdiffs4(a, b);
    return (d & 255) + (d >> 8 & 255) + (d >> 16 & 255) + (d >> 24);
}
inline unsigned __vsadu4(unsigned a, unsigned b) {
    unsigned d = __vabsdiffu4(a, b);
    return (d & 255) + (d >> 8 & 255) + (d >> 16 & 255) + (d >> 24);
}

template <class T>
inline T __ldg(const T* p) {
    return *p;
}
template <class T>
inline T __ldca(const T* p) {
    return *p;
}
template <class T>
inline T __ldcg(const T* p) {
    return *p;
}
template <class T>
inline T __ldcs(const T* p) {
    return *p;
}
template <class T>
inline T __ldcv(const T* p) {
    return *p;
}
template <class T>
inline T __ldlu(const T* p) {
    return *p;
}
template <class T, class V>
inline void __stcg(T* p, V v) {
    *p = v;
}
template <class T, class V>
inline void __stcs(T* p, V v) {
    *p = v;
}
template <class T, class V>
inline void __stwb(T* p, V v) {
    *p = v;
}
template <class T, class V>
inline void __stwt(T* p, V v) {
    *p = v;
}
namespace cuda_cpu {
namespace ptx {
unsigned shared_address(const void* p, Site at);
char* shared_pointer(unsigned long long address, Site at);
}  // namespace ptx
}  // namespace cuda_cpu
inline size_t __cvta_generic_to_shared(const void* p, CUDA_CPU_HERE) {
    return ::cuda_cpu::ptx::shared_address(p, at);
}
inline size_t __cvta_generic_to_global(const void* p) {
    return size_t(p);
}
inline void* __cvta_shared_to_generic(size_t p, CUDA_CPU_HERE) {
    return ::cuda_cpu::ptx::shared_pointer(p, at);
}
#ifndef __clang__
#define __builtin_assume(x) ((void)0)
#endif
#define __assume(x) ((void)0)
