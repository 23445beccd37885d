// Tensor cores on the CPU: nvcuda::wmma. A fragment is a small matrix spread over a warp's 32
// lanes; which lane holds which element CUDA leaves open. Here it is as in nvcc's machine code for
// every architecture from 7.5 to 12.0 (but for the sums of 8-bit integers of 8x32x16 on 7.5), so
// that programs which rely on it do here what they do there.
// A product is a meeting of the warp: each lane leaves the addresses of its fragments, and the
// first lane to go on multiplies for all of them. Products are exact and summed in float (int,
// double); a GPU sums in an order and with a rounding of its own. Names and meaning are those of
// the CUDA C++ Programming Guide, "Warp Matrix Functions".
// 4-bit and 1-bit types are not offered.
#pragma once
#include <type_traits>
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "macros_aside.inc"

namespace nvcuda {
namespace wmma {
struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
namespace precision {
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };

// x rounded to TF32's 10 bits behind the point, halves away from zero.
__device__ inline float __float_to_tf32(float x) {
    unsigned bits = ::cuda_cpu::bits_of(x);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return x;
    return ::cuda_cpu::float_of((bits + 0x1000u) & 0xffffe000u);
}
}  // namespace wmma
}  // namespace nvcuda

namespace cuda_cpu {
namespace wmma = nvcuda::wmma;

template <class T, class... Types>
constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

// What a matrix of T is kept as, and what its products are summed in.
template <class T>
struct MatrixType {
    using Kept = T;
    using Sum = float;
};
template <>
struct MatrixType<wmma::precision::tf32> {
    using Kept = float;
    using Sum = float;
};
template <>
struct MatrixType<signed char> {
    using Kept = signed char;
    using Sum = int;
};
template <>
struct MatrixType<unsigned char> {
    using Kept = unsigned char;
    using Sum = int;
};
template <>
struct MatrixType<double> {
    using Kept = double;
    using Sum = double;
};
template <class T>
using Kept = typename MatrixType<T>::Kept;

template <class Use, int M, int N, int K, class T, class Layout>
constexpr bool fragment_offered() {
    constexpr bool sum = std::is_same_v<Use, wmma::accumulator>;
    if (!is_one_of<Use, wmma::matrix_a, wmma::matrix_b, wmma::accumulator>)
        return false;
    if (sum ? !std::is_void_v<Layout> : !is_one_of<Layout, wmma::row_major, wmma::col_major>)
        return false;
    if (M == 8 && N == 8 && K == 4)
        return is_one_of<T, double>;
    if (M == 16 && N == 16 && K == 8)
        return is_one_of<T, std::conditional_t<sum, float, wmma::precision::tf32>>;
    if (K != 16 || !((M == 16 && N == 16) || (M == 32 && N == 8) || (M == 8 && N == 32)))
        return false;
    return sum ? is_one_of<T, __half, float, int>
               : is_one_of<T, __half, __nv_bfloat16, signed char, unsigned char>;
}
template <class T, class Sum>
constexpr bool sums_offered =
    is_one_of<T, __half> ? is_one_of<Sum, __half, float>
                         : std::is_same_v<Sum, typename MatrixType<T>::Sum>;

// Which element a lane holds as x[i]. The lanes stand in groups of four: a register of a lane holds
// neighbours along K (of a sum: along a row), and its next registers are 8 rows or columns further.
// The operand with the longer side (A, if M is not 8) goes on along that side first. 8 x 32 is
// computed as the transposed product.
struct Place {
    int row, column;
};
template <class Use, int M, int N, int K, class T>
constexpr Place place_in_fragment(int lane, int i) {
    constexpr bool transposed = M == 8 && N == 32, of_a = std::is_same_v<Use, wmma::matrix_a>;
    int group = lane / 4, member = lane % 4;
    if (std::is_same_v<Use, wmma::accumulator>) {
        int far = group + i / 2 % 2 * 8, near = member * 2 + i % 2;
        if (M == 16)
            near += i / 4 * 8;
        else
            far += i / 4 * 16;
        return transposed ? Place{near, far} : Place{far, near};
    }
    constexpr int size = sizeof(Kept<T>), each = size < 4 ? 4 / size : 1;
    constexpr int k_halves = K > 4 * each ? 2 : 1;
    int k = member * each + i % each, side = group, rest = i / each;
    if (of_a != transposed) {
        side += rest % 2 * 8;
        rest /= 2;
        k += rest % k_halves * 4 * each;
        side += rest / k_halves * 16;
    } else {
        k += rest % k_halves * 4 * each;
        side += rest / k_halves * 8;
    }
    return of_a ? Place{side, k} : Place{k, side};
}
// The same as a table: of each lane in turn, where its elements are, counted row by row.
template <class Use, int M, int N, int K, class T>
struct Places {
    static constexpr int rows = std::is_same_v<Use, wmma::matrix_b> ? K : M,
                         columns = std::is_same_v<Use, wmma::matrix_a> ? K : N,
                         each = rows * columns / 32;
    unsigned short at[rows * columns] = {};

    constexpr Places() {
        for (int e = 0; e < rows * columns; ++e) {
            Place p = place_in_fragment<Use, M, N, K, T>(e / each, e % each);
            at[e] = p.row * columns + p.column;
        }
    }
    constexpr Place operator()(int lane, int i) const {
        int e = at[lane * each + i % each];
        return {e / columns, e % columns};
    }
};
template <class Use, int M, int N, int K, class T>
inline constexpr Places<Use, M, N, K, T> places;

// An operand as the tensor core sees it: of a float that is taken for TF32 it ignores the lowest 13
// bits.
template <class T>
CUDA_CPU_UNCHECKED inline typename MatrixType<T>::Sum operand(Kept<T> x) {
    if constexpr (std::is_same_v<T, wmma::precision::tf32>)
        return float_of(bits_of(x) & 0xffffe000u);
    else
        return x;
}

// Waits until the whole warp has come.
CUDA_CPU_UNCHECKED inline void whole_warp(const char* name, Site at) {
    unsigned present = lanes_present(0xffffffffu, name, at, op_aligned);
    if (present != 0xffffffffu)
        warp_incomplete(present, name, at);
}
}  // namespace cuda_cpu

namespace nvcuda {
namespace wmma {
// A combination that CUDA does not have is an incomplete type, as with nvcc: the error stands in
// the program's own line.
template <class Use, int M, int N, int K, class T, class Layout = void, class = void>
class fragment;
template <class Use, int M, int N, int K, class T, class Layout>
class fragment<Use, M, N, K, T, Layout,
               std::enable_if_t<::cuda_cpu::fragment_offered<Use, M, N, K, T, Layout>()>> {
  public:
    static constexpr const auto& places_ = ::cuda_cpu::places<Use, M, N, K, T>;
    static constexpr int rows_ = places_.rows, columns_ = places_.columns;
    typedef T element_type;
    typedef ::cuda_cpu::Kept<T> storage_element_type;
    // An operand of half precision has 16 elements in each lane; where the matrix has fewer, they
    // are there more than once.
    enum {
        num_elements = std::is_same_v<T, __half> && !std::is_void_v<Layout> ? 16
                                                                            : rows_ * columns_ / 32,
        num_storage_elements = num_elements
    };
    storage_element_type x[num_storage_elements];
};

template <class Use, int M, int N, int K, class T, class Layout>
__device__ inline void fill_fragment(fragment<Use, M, N, K, T, Layout>& f,
                                     const ::cuda_cpu::Kept<T>& value) {
    for (auto& x : f.x)
        x = value;
}

// ---- memory: every lane loads and stores its own elements, in the caller's line
template <class Use, int M, int N, int K, class T, class Layout,
          class = std::enable_if_t<!std::is_void_v<Layout>>>
__device__ __attribute__((always_inline)) inline void load_matrix_sync(
    fragment<Use, M, N, K, T, Layout>& f, const ::cuda_cpu::Kept<T>* memory, unsigned ld,
    CUDA_CPU_HERE) {
    ::cuda_cpu::whole_warp("load_matrix_sync", at);
    ::cuda_cpu::check_matrix(memory, ld * sizeof(*memory), "load_matrix_sync", at);
    for (int i = 0; i < f.num_elements; ++i) {
        ::cuda_cpu::Place p = f.places_(::cuda_cpu::lane(), i);
        f.x[i] = memory[std::is_same_v<Layout, row_major> ? size_t(p.row) * ld + p.column
                                                          : size_t(p.column) * ld + p.row];
    }
}
template <int M, int N, int K, class T>
__device__ __attribute__((always_inline)) inline void load_matrix_sync(
    fragment<accumulator, M, N, K, T>& f, const ::cuda_cpu::Kept<T>* memory, unsigned ld,
    layout_t layout, CUDA_CPU_HERE) {
    ::cuda_cpu::whole_warp("load_matrix_sync", at);
    ::cuda_cpu::check_matrix(memory, ld * sizeof(*memory), "load_matrix_sync", at);
    for (int i = 0; i < f.num_elements; ++i) {
        ::cuda_cpu::Place p = f.places_(::cuda_cpu::lane(), i);
        f.x[i] = memory[layout == mem_row_major ? size_t(p.row) * ld + p.column
                                                : size_t(p.column) * ld + p.row];
    }
}
template <int M, int N, int K, class T>
__device__ __attribute__((always_inline)) inline void store_matrix_sync(
    ::cuda_cpu::Kept<T>* memory, const fragment<accumulator, M, N, K, T>& f, unsigned ld,
    layout_t layout, CUDA_CPU_HERE) {
    ::cuda_cpu::whole_warp("store_matrix_sync", at);
    ::cuda_cpu::check_matrix(memory, ld * sizeof(*memory), "store_matrix_sync", at);
    for (int i = 0; i < f.num_elements; ++i) {
        ::cuda_cpu::Place p = f.places_(::cuda_cpu::lane(), i);
        memory[layout == mem_row_major ? size_t(p.row) * ld + p.column
                                       : size_t(p.column) * ld + p.row] = f.x[i];
    }
}
}  // namespace wmma
}  // namespace nvcuda

// ---- the product
namespace cuda_cpu {
// What each lane brings: where its pieces of the four matrices are.
template <class D, class A, class B, class C>
struct Pieces {
    D* d;
    const A* a;
    const B* b;
    const C* c;
};

// D = A B + C for the whole warp. `lanes` has the address of each lane's Pieces.
template <class D, class A, class B, class C>
CUDA_CPU_UNCHECKED __attribute__((noinline)) void multiply(const unsigned long long* lanes,
                                                           bool saturate) {
    constexpr int M = A::rows_, N = B::columns_, K = A::columns_;
    using T = typename A::element_type;
    using Sum = typename MatrixType<T>::Sum;
    Sum a[M * K], b[K * N], sum[M * N] = {};
    constexpr int of_a = M * K / 32, of_b = K * N / 32, of_sum = M * N / 32;  // elements in a lane
    auto of = [&](int lane) { return *reinterpret_cast<const Pieces<D, A, B, C>*>(lanes[lane]); };
    for (int lane = 0; lane < 32; ++lane) {
        Pieces<D, A, B, C> p = of(lane);
        for (int i = 0; i < of_a; ++i)
            a[A::places_.at[lane * of_a + i]] = operand<T>(p.a->x[i]);
        for (int i = 0; i < of_b; ++i)
            b[B::places_.at[lane * of_b + i]] = operand<T>(p.b->x[i]);
        if constexpr (!std::is_same_v<Sum, int>)
            for (int i = 0; i < of_sum; ++i)
                sum[C::places_.at[lane * of_sum + i]] = p.c->x[i];
    }
    for (int i = 0; i < M; ++i)
        for (int k = 0; k < K; ++k)
            for (int j = 0; j < N; ++j)
                sum[i * N + j] += a[i * K + k] * b[k * N + j];
    for (int lane = 0; lane < 32; ++lane) {
        Pieces<D, A, B, C> p = of(lane);
        for (int i = 0; i < of_sum; ++i) {
            Sum product = sum[C::places_.at[lane * of_sum + i]];
            if constexpr (std::is_same_v<Sum, int>) {
                long long exact = (long long)p.c->x[i] + product;
                p.d->x[i] = int(!saturate         ? exact
                                : exact > INT_MAX ? INT_MAX
                                : exact < INT_MIN ? INT_MIN
                                                  : exact);
            } else {
                p.d->x[i] = product;
            }
        }
    }
}
}  // namespace cuda_cpu

namespace nvcuda {
namespace wmma {
template <
    int M, int N, int K, class TD, class T, class LayoutA, class LayoutB, class TC,
    class = std::enable_if_t<::cuda_cpu::sums_offered<T, TD>&& ::cuda_cpu::sums_offered<T, TC>>>
CUDA_CPU_UNCHECKED __device__ inline void mma_sync(fragment<accumulator, M, N, K, TD>& d,
                                                   const fragment<matrix_a, M, N, K, T, LayoutA>& a,
                                                   const fragment<matrix_b, M, N, K, T, LayoutB>& b,
                                                   const fragment<accumulator, M, N, K, TC>& c,
                                                   bool saturate = false, CUDA_CPU_HERE) {
    ::cuda_cpu::Pieces<std::decay_t<decltype(d)>, std::decay_t<decltype(a)>,
                       std::decay_t<decltype(b)>, std::decay_t<decltype(c)>>
        mine = {&d, &a, &b, &c};
    ::cuda_cpu::Meeting* m = ::cuda_cpu::meet(0xffffffffu, ::cuda_cpu::op_product,
                                              (unsigned long long)&mine, "mma_sync", at);
    if (m->arrived != 0xffffffffu)
        ::cuda_cpu::warp_incomplete(m->arrived, "mma_sync", at);
    // Of the lanes, all of which have come, none has gone on yet: this one multiplies for all.
    if (m->leaving == 32)
        ::cuda_cpu::multiply<std::decay_t<decltype(d)>, std::decay_t<decltype(a)>,
                             std::decay_t<decltype(b)>, std::decay_t<decltype(c)>>(m->value,
                                                                                   saturate);
    ::cuda_cpu::part(m);
}
}  // namespace wmma
}  // namespace nvcuda
#include "macros_back.inc"
