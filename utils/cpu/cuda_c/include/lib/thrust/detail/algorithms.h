// The algorithms: plain loops, run on the device as one thread when any iterator is on the device
// or the policy says so, otherwise on the host.
#pragma once
#include <algorithm>
#include <iostream>  // NVIDIA's headers bring it, too
#include <iterator>
#include <numeric>
#include <vector>
#include "../../device_task.h"
#include "functional.h"
#include "iterators.h"
#include "../../macros_aside.inc"

namespace thrust {
namespace detail {
struct Policy {
    bool device;
    cudaStream_t stream = nullptr;
    Policy on(cudaStream_t s) const {
        return {device, s};
    }
};
// Stands in a result for "n further than argument K"; run() gives back the caller's own iterator.
template <int K>
struct At {
    std::ptrdiff_t n;
};
template <int K, class Arguments>
auto resolve(At<K> at, const Arguments& a) {
    return std::get<K>(a) + at.n;
}
template <class X, class Arguments>
X resolve(const X& x, const Arguments&) {
    return x;
}
template <int J, int K, class Arguments>
auto resolve(const std::pair<At<J>, At<K>>& p, const Arguments& a) {
    return std::make_pair(resolve(p.first, a), resolve(p.second, a));
}

template <class F, class... A>
auto run_with(const Policy& policy, F f, const A&... a) {
    using Result = decltype(f(raw(a)...));
    if constexpr (std::is_void_v<Result>) {
        if (!policy.device || ::cuda_cpu::in_kernel())
            return f(raw(a)...);
        auto arguments = std::make_tuple(raw(a)...);
        ::cuda_cpu::device_task(policy.stream, 1, [=](long) { std::apply(f, arguments); });
        cudaStreamSynchronize(policy.stream);
    } else {
        auto original = std::make_tuple(a...);
        if (!policy.device || ::cuda_cpu::in_kernel())
            return resolve(f(raw(a)...), original);
        auto arguments = std::make_tuple(raw(a)...);
        Result* box;  // where the device leaves the result for the host
        cudaMallocManaged(&box, sizeof(Result));
        ::cuda_cpu::device_task(policy.stream, 1,
                                [=](long) { new ((void*)box) Result(std::apply(f, arguments)); });
        cudaStreamSynchronize(policy.stream);
        Result result = *box;
        cudaFree(box);
        return resolve(result, original);
    }
}
template <class F, class First, class... A>
auto run(F f, const First& first, const A&... a) {
    if constexpr (std::is_same_v<First, Policy>)
        return run_with(first, f, a...);
    else
        return run_with(Policy{is_device<First>::value || (is_device<A>::value || ...)}, f, first,
                        a...);
}
template <class I>
using Value = typename std::iterator_traits<I>::value_type;
}  // namespace detail

inline constexpr detail::Policy host{false}, device{true}, seq{false};
namespace cuda {
inline constexpr detail::Policy par{true}, par_nosync{true};
}
namespace system {
namespace cuda = ::thrust::cuda;
}

// An algorithm's body sees raw iterators; overloads are told apart as in any C++.
namespace detail {
// ---- filling and copying
struct fill_body {
    template <class I, class T>
    void operator()(I first, I last, const T& v) const {
        for (; first != last; ++first)
            *first = v;
    }
};
struct fill_n_body {
    template <class I, class N, class T>
    auto operator()(I first, N n, const T& v) const {
        for (N i = 0; i < n; i++)
            first[i] = v;
        return At<0>{std::ptrdiff_t(n)};
    }
};
struct sequence_body {
    template <class I>
    void operator()(I first, I last) const {
        (*this)(first, last, Value<I>(0));
    }
    template <class I, class T>
    void operator()(I first, I last, T v) const {
        for (; first != last; ++first, v = T(v + 1))
            *first = v;
    }
    template <class I, class T>
    void operator()(I first, I last, T v, T step) const {
        for (; first != last; ++first, v = T(v + step))
            *first = v;
    }
};
struct tabulate_body {
    template <class I, class F>
    void operator()(I first, I last, F f) const {
        for (std::ptrdiff_t i = 0, n = last - first; i < n; i++)
            first[i] = f(i);
    }
};
struct generate_body {
    template <class I, class F>
    void operator()(I first, I last, F f) const {
        for (; first != last; ++first)
            *first = f();
    }
};
struct copy_if_body {
    template <class I, class O, class P>
    auto operator()(I first, I last, O out, P keep) const {
        std::ptrdiff_t n = 0;
        for (; first != last; ++first)
            if (keep(*first))
                out[n++] = *first;
        return At<2>{n};
    }
    template <class I, class S, class O, class P>
    auto operator()(I first, I last, S stencil, O out, P keep) const {
        std::ptrdiff_t n = 0;
        for (; first != last; ++first, ++stencil)
            if (keep(*stencil))
                out[n++] = *first;
        return At<3>{n};
    }
};
struct gather_body {
    template <class M, class I, class O>
    auto operator()(M first, M last, I in, O out) const {
        for (std::ptrdiff_t i = 0, n = last - first; i < n; i++)
            out[i] = in[first[i]];
        return At<3>{last - first};
    }
};
struct scatter_body {
    template <class I, class M, class O>
    void operator()(I first, I last, M map, O out) const {
        for (; first != last; ++first, ++map)
            out[*map] = *first;
    }
};
struct scatter_if_body {
    template <class I, class M, class S, class O>
    void operator()(I first, I last, M map, S stencil, O out) const {
        (*this)(first, last, map, stencil, out, identity<>());
    }
    template <class I, class M, class S, class O, class P>
    void operator()(I first, I last, M map, S stencil, O out, P keep) const {
        for (; first != last; ++first, ++map, ++stencil)
            if (keep(*stencil))
                out[*map] = *first;
    }
};
struct gather_if_body {
    template <class M, class S, class I, class O>
    auto operator()(M first, M last, S stencil, I in, O out) const {
        return (*this)(first, last, stencil, in, out, identity<>());
    }
    template <class M, class S, class I, class O, class P>
    auto operator()(M first, M last, S stencil, I in, O out, P keep) const {
        for (std::ptrdiff_t i = 0, n = last - first; i < n; i++)
            if (keep(stencil[i]))
                out[i] = in[first[i]];
        return At<4>{last - first};
    }
};
struct swap_ranges_body {
    template <class I, class J>
    auto operator()(I first, I last, J other) const {
        std::swap_ranges(first, last, other);
        return At<2>{last - first};
    }
};
struct reverse_body {
    template <class I>
    void operator()(I first, I last) const {
        std::reverse(first, last);
    }
};
struct reverse_copy_body {
    template <class I, class O>
    auto operator()(I first, I last, O out) const {
        std::reverse_copy(first, last, out);
        return At<2>{last - first};
    }
};
struct replace_body {
    template <class I, class T>
    void operator()(I first, I last, const T& a, const T& b) const {
        std::replace(first, last, a, b);
    }
};
struct replace_if_body {
    template <class I, class P, class T>
    void operator()(I first, I last, P p, const T& v) const {
        for (; first != last; ++first)
            if (p(*first))
                *first = v;
    }
};

// ---- transformations
struct for_each_body {
    template <class I, class F>
    auto operator()(I first, I last, F f) const {
        for (; first != last; ++first) {
            auto&& v = *first;
            f(v);
        }
        return At<1>{0};
    }
};
struct for_each_n_body {
    template <class I, class N, class F>
    auto operator()(I first, N n, F f) const {
        for (N i = 0; i < n; i++) {
            auto&& v = first[i];
            f(v);
        }
        return At<0>{std::ptrdiff_t(n)};
    }
};
struct transform_body {
    template <class I, class O, class F>
    auto operator()(I first, I last, O out, F f) const {
        auto n = last - first;
        for (; first != last; ++first, ++out)
            *out = f(*first);
        return At<2>{n};
    }
    template <class I, class J, class O, class F>
    auto operator()(I first, I last, J other, O out, F f) const {
        auto n = last - first;
        for (; first != last; ++first, ++other, ++out)
            *out = f(*first, *other);
        return At<3>{n};
    }
};
struct transform_if_body {
    template <class I, class O, class F, class P>
    auto operator()(I first, I last, O out, F f, P p) const {
        auto n = last - first;
        for (; first != last; ++first, ++out)
            if (p(*first))
                *out = f(*first);
        return At<2>{n};
    }
    template <class I, class S, class O, class F, class P>
    auto operator()(I first, I last, S stencil, O out, F f, P p) const {
        auto n = last - first;
        for (; first != last; ++first, ++stencil, ++out)
            if (p(*stencil))
                *out = f(*first);
        return At<3>{n};
    }
};
struct adjacent_difference_body {
    template <class I, class O>
    auto operator()(I first, I last, O out) const {
        return (*this)(first, last, out, minus<Value<I>>());
    }
    template <class I, class O, class F>
    auto operator()(I first, I last, O out, F f) const {
        auto n = last - first;
        Value<I> before{};
        for (std::ptrdiff_t i = 0; i < n; i++) {
            Value<I> v = first[i];
            out[i] = i == 0 ? v : f(v, before);
            before = v;
        }
        return At<2>{n};
    }
};

// ---- reductions
struct reduce_body {
    template <class I>
    auto operator()(I first, I last) const {
        return (*this)(first, last, Value<I>(0), plus<Value<I>>());
    }
    template <class I, class T>
    T operator()(I first, I last, T init) const {
        return (*this)(first, last, init, plus<T>());
    }
    template <class I, class T, class F>
    T operator()(I first, I last, T init, F f) const {
        for (; first != last; ++first)
            init = f(init, *first);
        return init;
    }
};
struct transform_reduce_body {
    template <class I, class F, class T, class G>
    T operator()(I first, I last, F f, T init, G g) const {
        for (; first != last; ++first)
            init = g(init, f(*first));
        return init;
    }
};
struct inner_product_body {
    template <class I, class J, class T>
    T operator()(I first, I last, J other, T init) const {
        return (*this)(first, last, other, init, plus<T>(), multiplies<T>());
    }
    template <class I, class J, class T, class F, class G>
    T operator()(I first, I last, J other, T init, F f, G g) const {
        for (; first != last; ++first, ++other)
            init = f(init, g(*first, *other));
        return init;
    }
};
struct count_body {
    template <class I, class T>
    std::ptrdiff_t operator()(I first, I last, const T& v) const {
        return std::count(first, last, v);
    }
};
struct count_if_body {
    template <class I, class P>
    std::ptrdiff_t operator()(I first, I last, P p) const {
        return std::count_if(first, last, p);
    }
};
struct min_element_body {
    template <class I>
    auto operator()(I first, I last) const {
        return At<0>{std::min_element(first, last) - first};
    }
    template <class I, class F>
    auto operator()(I first, I last, F less) const {
        return At<0>{std::min_element(first, last, less) - first};
    }
};
struct max_element_body {
    template <class I>
    auto operator()(I first, I last) const {
        return At<0>{std::max_element(first, last) - first};
    }
    template <class I, class F>
    auto operator()(I first, I last, F less) const {
        return At<0>{std::max_element(first, last, less) - first};
    }
};
struct minmax_element_body {
    template <class I>
    auto operator()(I first, I last) const {
        return (*this)(first, last, less<>());
    }
    template <class I, class F>
    auto operator()(I first, I last, F less) const {
        return std::make_pair(At<0>{std::min_element(first, last, less) - first},
                              At<0>{std::max_element(first, last, less) - first});
    }
};
struct all_of_body {
    template <class I, class P>
    bool operator()(I first, I last, P p) const {
        return std::all_of(first, last, p);
    }
};
struct any_of_body {
    template <class I, class P>
    bool operator()(I first, I last, P p) const {
        return std::any_of(first, last, p);
    }
};
struct none_of_body {
    template <class I, class P>
    bool operator()(I first, I last, P p) const {
        return std::none_of(first, last, p);
    }
};
struct equal_body {
    template <class I, class J>
    bool operator()(I first, I last, J other) const {
        return std::equal(first, last, other);
    }
    template <class I, class J, class P>
    bool operator()(I first, I last, J other, P p) const {
        return std::equal(first, last, other, p);
    }
};
struct find_body {
    template <class I, class T>
    auto operator()(I first, I last, const T& v) const {
        return At<0>{std::find(first, last, v) - first};
    }
};
struct find_if_body {
    template <class I, class P>
    auto operator()(I first, I last, P p) const {
        return At<0>{std::find_if(first, last, p) - first};
    }
};
struct find_if_not_body {
    template <class I, class P>
    auto operator()(I first, I last, P p) const {
        return At<0>{std::find_if_not(first, last, p) - first};
    }
};
struct mismatch_body {
    template <class I, class J>
    auto operator()(I first, I last, J other) const {
        return (*this)(first, last, other, equal_to<>());
    }
    template <class I, class J, class P>
    auto operator()(I first, I last, J other, P equal) const {
        std::ptrdiff_t at = 0, n = last - first;
        while (at < n && equal(first[at], other[at]))
            at++;
        return std::make_pair(At<0>{at}, At<2>{at});
    }
};
struct is_sorted_body {
    template <class I>
    bool operator()(I first, I last) const {
        return std::is_sorted(first, last);
    }
    template <class I, class F>
    bool operator()(I first, I last, F less) const {
        return std::is_sorted(first, last, less);
    }
};
struct lower_bound_body {
    template <class I, class T>
    auto operator()(I first, I last, const T& v) const {
        return At<0>{std::lower_bound(first, last, v) - first};
    }
    template <class I, class J, class O>
    auto operator()(I first, I last, J from, J to, O out) const {
        auto n = to - from;
        for (; from != to; ++from, ++out)
            *out = std::lower_bound(first, last, *from) - first;
        return At<4>{n};
    }
};
struct upper_bound_body {
    template <class I, class T>
    auto operator()(I first, I last, const T& v) const {
        return At<0>{std::upper_bound(first, last, v) - first};
    }
    template <class I, class J, class O>
    auto operator()(I first, I last, J from, J to, O out) const {
        auto n = to - from;
        for (; from != to; ++from, ++out)
            *out = std::upper_bound(first, last, *from) - first;
        return At<4>{n};
    }
};
struct binary_search_body {
    template <class I, class T>
    bool operator()(I first, I last, const T& v) const {
        return std::binary_search(first, last, v);
    }
};

// Runs of equal keys, each to one key and one reduced value.
struct reduce_by_key_body {
    template <class K, class V, class KO, class VO>
    auto operator()(K first, K last, V values, KO keys_out, VO values_out) const {
        return (*this)(first, last, values, keys_out, values_out, equal_to<>(), plus<>());
    }
    template <class K, class V, class KO, class VO, class E>
    auto operator()(K first, K last, V values, KO keys_out, VO values_out, E equal) const {
        return (*this)(first, last, values, keys_out, values_out, equal, plus<>());
    }
    template <class K, class V, class KO, class VO, class E, class F>
    auto operator()(K first, K last, V values, KO keys_out, VO values_out, E equal, F f) const {
        std::ptrdiff_t runs = 0, n = last - first;
        for (std::ptrdiff_t i = 0; i < n; runs++) {
            Value<K> key = first[i];
            Value<V> sum = values[i++];
            for (; i < n && equal(key, first[i]); i++)
                sum = f(sum, values[i]);
            keys_out[runs] = key;
            values_out[runs] = sum;
        }
        return std::make_pair(At<3>{runs}, At<4>{runs});
    }
};

// ---- scans
struct inclusive_scan_body {
    template <class I, class O>
    auto operator()(I first, I last, O out) const {
        return (*this)(first, last, out, plus<>());
    }
    template <class I, class O, class F>
    auto operator()(I first, I last, O out, F f) const {
        auto n = last - first;
        if (n > 0) {
            Value<I> sum = *first;
            *out = sum;
            for (std::ptrdiff_t i = 1; i < n; i++)
                out[i] = sum = f(sum, first[i]);
        }
        return At<2>{n};
    }
    template <class I, class O, class T, class F>
    auto operator()(I first, I last, O out, T init, F f) const {
        auto n = last - first;
        for (std::ptrdiff_t i = 0; i < n; i++)
            out[i] = init = f(init, first[i]);
        return At<2>{n};
    }
};
struct exclusive_scan_body {
    template <class I, class O>
    auto operator()(I first, I last, O out) const {
        return (*this)(first, last, out, Value<I>(0), plus<>());
    }
    template <class I, class O, class T>
    auto operator()(I first, I last, O out, T init) const {
        return (*this)(first, last, out, init, plus<>());
    }
    template <class I, class O, class T, class F>
    auto operator()(I first, I last, O out, T init, F f) const {
        auto n = last - first;
        for (std::ptrdiff_t i = 0; i < n; i++) {
            T next = f(init, first[i]);
            out[i] = init;
            init = next;
        }
        return At<2>{n};
    }
};
struct transform_inclusive_scan_body {
    template <class I, class O, class F, class G>
    auto operator()(I first, I last, O out, F f, G g) const {
        return inclusive_scan_body()(make_transform_iterator(first, f),
                                     make_transform_iterator(last, f), out, g);
    }
};
struct transform_exclusive_scan_body {
    template <class I, class O, class F, class T, class G>
    auto operator()(I first, I last, O out, F f, T init, G g) const {
        return exclusive_scan_body()(make_transform_iterator(first, f),
                                     make_transform_iterator(last, f), out, init, g);
    }
};
struct inclusive_scan_by_key_body {
    template <class K, class V, class O>
    auto operator()(K first, K last, V values, O out) const {
        return (*this)(first, last, values, out, equal_to<>(), plus<>());
    }
    template <class K, class V, class O, class E>
    auto operator()(K first, K last, V values, O out, E equal) const {
        return (*this)(first, last, values, out, equal, plus<>());
    }
    template <class K, class V, class O, class E, class F>
    auto operator()(K first, K last, V values, O out, E equal, F f) const {
        std::ptrdiff_t n = last - first;
        Value<V> sum{};
        for (std::ptrdiff_t i = 0; i < n; i++) {
            bool goes_on = i > 0 && equal(first[i - 1], first[i]);
            sum = goes_on ? Value<V>(f(sum, values[i])) : Value<V>(values[i]);
            out[i] = sum;
        }
        return At<3>{n};
    }
};
struct exclusive_scan_by_key_body {
    template <class K, class V, class O>
    auto operator()(K first, K last, V values, O out) const {
        return (*this)(first, last, values, out, Value<V>(0));
    }
    template <class K, class V, class O, class T>
    auto operator()(K first, K last, V values, O out, T init) const {
        return (*this)(first, last, values, out, init, equal_to<>(), plus<>());
    }
    template <class K, class V, class O, class T, class E>
    auto operator()(K first, K last, V values, O out, T init, E equal) const {
        return (*this)(first, last, values, out, init, equal, plus<>());
    }
    template <class K, class V, class O, class T, class E, class F>
    auto operator()(K first, K last, V values, O out, T init, E equal, F f) const {
        std::ptrdiff_t n = last - first;
        T sum = init;
        for (std::ptrdiff_t i = 0; i < n; i++) {
            if (i > 0 && !equal(first[i - 1], first[i]))
                sum = init;
            Value<V> v = values[i];
            out[i] = sum;
            sum = f(sum, v);
        }
        return At<3>{n};
    }
};

// ---- sorting: values are taken out, sorted and put back, so that zips can be sorted too
template <class I, class F>
void sort_values(I first, I last, F less) {
    std::vector<Value<I>> values(first, last);
    std::stable_sort(values.begin(), values.end(), less);
    for (auto& v : values) {
        *first = v;
        ++first;
    }
}
template <class K, class V, class F>
void sort_pairs(K first, K last, V values, F less) {
    std::ptrdiff_t n = last - first;
    std::vector<Value<K>> keys(first, last);
    std::vector<Value<V>> old(values, values + n);
    std::vector<std::ptrdiff_t> order(n);
    for (std::ptrdiff_t i = 0; i < n; i++)
        order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::ptrdiff_t a, std::ptrdiff_t b) { return less(keys[a], keys[b]); });
    for (std::ptrdiff_t i = 0; i < n; i++) {
        first[i] = keys[order[i]];
        values[i] = old[order[i]];
    }
}
struct sort_body {
    template <class I>
    void operator()(I first, I last) const {
        sort_values(first, last, less<>());
    }
    template <class I, class F>
    void operator()(I first, I last, F less) const {
        sort_values(first, last, less);
    }
};
struct sort_by_key_body {
    template <class K, class V>
    void operator()(K first, K last, V values) const {
        sort_pairs(first, last, values, less<>());
    }
    template <class K, class V, class F>
    void operator()(K first, K last, V values, F less) const {
        sort_pairs(first, last, values, less);
    }
};
struct stable_sort_body : sort_body {};
struct stable_sort_by_key_body : sort_by_key_body {};
struct merge_body {
    template <class I, class J, class O>
    auto operator()(I a, I a_end, J b, J b_end, O out) const {
        return (*this)(a, a_end, b, b_end, out, less<>());
    }
    template <class I, class J, class O, class F>
    auto operator()(I a, I a_end, J b, J b_end, O out, F less) const {
        auto n = (a_end - a) + (b_end - b);
        std::merge(a, a_end, b, b_end, out, less);
        return At<4>{n};
    }
};
struct merge_by_key_body {
    template <class I, class J, class V, class W, class KO, class VO>
    auto operator()(I a, I a_end, J b, J b_end, V of_a, W of_b, KO keys, VO values) const {
        return (*this)(a, a_end, b, b_end, of_a, of_b, keys, values, less<>());
    }
    template <class I, class J, class V, class W, class KO, class VO, class F>
    auto operator()(I a, I a_end, J b, J b_end, V of_a, W of_b, KO keys, VO values, F less) const {
        auto n = (a_end - a) + (b_end - b);
        for (; a != a_end || b != b_end; ++keys, ++values) {
            bool second = a == a_end || (b != b_end && less(*b, *a));
            if (second) {
                *keys = *b++;
                *values = *of_b++;
            } else {
                *keys = *a++;
                *values = *of_a++;
            }
        }
        return std::make_pair(At<6>{n}, At<7>{n});
    }
};
#define CUDA_CPU_SET_OPERATION(name)                                             \
    struct name##_body {                                                         \
        template <class I, class J, class O, class... Less>                      \
        auto operator()(I a, I a_end, J b, J b_end, O out, Less... less) const { \
            return At<4>{std::name(a, a_end, b, b_end, out, less...) - out};     \
        }                                                                        \
    };
CUDA_CPU_SET_OPERATION(set_difference)
CUDA_CPU_SET_OPERATION(set_intersection)
CUDA_CPU_SET_OPERATION(set_symmetric_difference)
CUDA_CPU_SET_OPERATION(set_union)
#undef CUDA_CPU_SET_OPERATION

// ---- removing, keeping, parting
struct remove_if_body {
    template <class I, class P>
    auto operator()(I first, I last, P p) const {
        std::ptrdiff_t kept = 0, n = last - first;
        for (std::ptrdiff_t i = 0; i < n; i++)
            if (!p(first[i]))
                first[kept++] = Value<I>(first[i]);
        return At<0>{kept};
    }
    template <class I, class S, class P>
    auto operator()(I first, I last, S stencil, P p) const {
        std::ptrdiff_t kept = 0, n = last - first;
        for (std::ptrdiff_t i = 0; i < n; i++)
            if (!p(stencil[i]))
                first[kept++] = Value<I>(first[i]);
        return At<0>{kept};
    }
};
struct remove_body {
    template <class I, class T>
    auto operator()(I first, I last, const T& v) const {
        return At<0>{std::remove(first, last, v) - first};
    }
};
struct remove_copy_body {
    template <class I, class O, class T>
    auto operator()(I first, I last, O out, const T& v) const {
        return At<2>{std::remove_copy(first, last, out, v) - out};
    }
};
struct remove_copy_if_body {
    template <class I, class O, class P>
    auto operator()(I first, I last, O out, P p) const {
        return At<2>{std::remove_copy_if(first, last, out, p) - out};
    }
};
struct unique_body {
    template <class I>
    auto operator()(I first, I last) const {
        return (*this)(first, last, equal_to<>());
    }
    template <class I, class E>
    auto operator()(I first, I last, E equal) const {
        std::ptrdiff_t kept = 0, n = last - first;
        for (std::ptrdiff_t i = 0; i < n; i++)
            if (i == 0 || !equal(first[kept - 1], first[i]))
                first[kept++] = Value<I>(first[i]);
        return At<0>{kept};
    }
};
struct unique_by_key_body {
    template <class K, class V>
    auto operator()(K first, K last, V values) const {
        std::ptrdiff_t kept = 0, n = last - first;
        for (std::ptrdiff_t i = 0; i < n; i++)
            if (i == 0 || !(first[kept - 1] == first[i])) {
                first[kept] = Value<K>(first[i]);
                values[kept++] = Value<V>(values[i]);
            }
        return std::make_pair(At<0>{kept}, At<2>{kept});
    }
};
struct unique_copy_body {
    template <class I, class O>
    auto operator()(I first, I last, O out) const {
        return At<2>{std::unique_copy(first, last, out) - out};
    }
    template <class I, class O, class E>
    auto operator()(I first, I last, O out, E equal) const {
        return At<2>{std::unique_copy(first, last, out, equal) - out};
    }
};
struct stable_partition_body {
    template <class I, class P>
    auto operator()(I first, I last, P p) const {
        return (*this)(first, last, std::vector<Value<I>>(first, last).begin(), p);
    }
    template <class I, class S, class P>
    auto operator()(I first, I last, S stencil, P p) const {
        std::vector<Value<I>> values(first, last);
        std::vector<bool> chosen;
        for (std::size_t i = 0; i < values.size(); i++)
            chosen.push_back(p(stencil[i]));
        std::ptrdiff_t at = 0;
        for (bool wanted : {true, false}) {
            for (std::size_t i = 0; i < values.size(); i++)
                if (chosen[i] == wanted)
                    first[at++] = values[i];
        }
        return At<0>{std::count(chosen.begin(), chosen.end(), true)};
    }
};
// Copies what p holds for to one place, the rest to another; returns how many went to the first.
template <class I, class S, class O, class Q, class P>
std::ptrdiff_t part(I first, I last, S stencil, O out_true, Q out_false, P p) {
    std::ptrdiff_t yes = 0, no = 0;
    for (; first != last; ++first, ++stencil) {
        if (p(*stencil))
            out_true[yes++] = *first;
        else
            out_false[no++] = *first;
    }
    return yes;
}
struct stable_partition_copy_body {
    template <class I, class O, class Q, class P>
    auto operator()(I first, I last, O out_true, Q out_false, P p) const {
        std::ptrdiff_t yes = part(first, last, first, out_true, out_false, p);
        return std::make_pair(At<2>{yes}, At<3>{(last - first) - yes});
    }
    template <class I, class S, class O, class Q, class P>
    auto operator()(I first, I last, S stencil, O out_true, Q out_false, P p) const {
        std::ptrdiff_t yes = part(first, last, stencil, out_true, out_false, p);
        return std::make_pair(At<3>{yes}, At<4>{(last - first) - yes});
    }
};
struct partition_copy_body : stable_partition_copy_body {};
struct partition_body : stable_partition_body {};
}  // namespace detail

// The names that programs call. An array arrives as the pointer to its first element, a function as
// the pointer to it.
#define CUDA_CPU_ALGORITHM(name)                                          \
    template <class... A>                                                 \
    auto name(A&&... a) {                                                 \
        return detail::run(detail::name##_body{}, std::decay_t<A>(a)...); \
    }
CUDA_CPU_ALGORITHM(fill)
CUDA_CPU_ALGORITHM(fill_n)
CUDA_CPU_ALGORITHM(sequence)
CUDA_CPU_ALGORITHM(tabulate)
CUDA_CPU_ALGORITHM(generate)
CUDA_CPU_ALGORITHM(copy_if)
CUDA_CPU_ALGORITHM(gather)
CUDA_CPU_ALGORITHM(scatter)
CUDA_CPU_ALGORITHM(gather_if)
CUDA_CPU_ALGORITHM(scatter_if)
CUDA_CPU_ALGORITHM(swap_ranges)
CUDA_CPU_ALGORITHM(reverse)
CUDA_CPU_ALGORITHM(reverse_copy)
CUDA_CPU_ALGORITHM(replace)
CUDA_CPU_ALGORITHM(replace_if)
CUDA_CPU_ALGORITHM(for_each)
CUDA_CPU_ALGORITHM(for_each_n)
CUDA_CPU_ALGORITHM(transform)
CUDA_CPU_ALGORITHM(transform_if)
CUDA_CPU_ALGORITHM(adjacent_difference)
CUDA_CPU_ALGORITHM(reduce)
CUDA_CPU_ALGORITHM(transform_reduce)
CUDA_CPU_ALGORITHM(inner_product)
CUDA_CPU_ALGORITHM(count)
CUDA_CPU_ALGORITHM(count_if)
CUDA_CPU_ALGORITHM(min_element)
CUDA_CPU_ALGORITHM(max_element)
CUDA_CPU_ALGORITHM(minmax_element)
CUDA_CPU_ALGORITHM(all_of)
CUDA_CPU_ALGORITHM(any_of)
CUDA_CPU_ALGORITHM(none_of)
CUDA_CPU_ALGORITHM(equal)
CUDA_CPU_ALGORITHM(find)
CUDA_CPU_ALGORITHM(find_if)
CUDA_CPU_ALGORITHM(find_if_not)
CUDA_CPU_ALGORITHM(mismatch)
CUDA_CPU_ALGORITHM(is_sorted)
CUDA_CPU_ALGORITHM(lower_bound)
CUDA_CPU_ALGORITHM(upper_bound)
CUDA_CPU_ALGORITHM(binary_search)
CUDA_CPU_ALGORITHM(reduce_by_key)
CUDA_CPU_ALGORITHM(inclusive_scan)
CUDA_CPU_ALGORITHM(exclusive_scan)
CUDA_CPU_ALGORITHM(transform_inclusive_scan)
CUDA_CPU_ALGORITHM(transform_exclusive_scan)
CUDA_CPU_ALGORITHM(inclusive_scan_by_key)
CUDA_CPU_ALGORITHM(exclusive_scan_by_key)
CUDA_CPU_ALGORITHM(sort)
CUDA_CPU_ALGORITHM(sort_by_key)
CUDA_CPU_ALGORITHM(stable_sort)
CUDA_CPU_ALGORITHM(stable_sort_by_key)
CUDA_CPU_ALGORITHM(merge)
CUDA_CPU_ALGORITHM(merge_by_key)
CUDA_CPU_ALGORITHM(set_difference)
CUDA_CPU_ALGORITHM(set_intersection)
CUDA_CPU_ALGORITHM(set_symmetric_difference)
CUDA_CPU_ALGORITHM(set_union)
CUDA_CPU_ALGORITHM(remove_if)
CUDA_CPU_ALGORITHM(remove)
CUDA_CPU_ALGORITHM(remove_copy)
CUDA_CPU_ALGORITHM(remove_copy_if)
CUDA_CPU_ALGORITHM(unique)
CUDA_CPU_ALGORITHM(unique_by_key)
CUDA_CPU_ALGORITHM(unique_copy)
CUDA_CPU_ALGORITHM(stable_partition)
CUDA_CPU_ALGORITHM(partition)
CUDA_CPU_ALGORITHM(stable_partition_copy)
CUDA_CPU_ALGORITHM(partition_copy)
#undef CUDA_CPU_ALGORITHM

// ---- copies may go between host and device, whichever side each end is on
namespace detail {
template <class I, class O>
O copy_in_any_order(const Policy& policy, I first, I last, O out);
template <class I>
constexpr bool any_order = std::is_base_of_v<std::random_access_iterator_tag,
                                             typename std::iterator_traits<I>::iterator_category>;

template <class I, class O>
O copy_range(const Policy& policy, I first, I last, O out) {
    if constexpr (!any_order<I>) {  // a list, a stream
        std::vector<Value<I>> values(first, last);
        return copy_range(policy, values.data(), values.data() + values.size(), out);
    } else if constexpr (!any_order<O>) {
        std::vector<Value<I>> values(last - first);
        copy_range(policy, first, last, values.data());
        return std::copy(values.begin(), values.end(), out);
    } else {
        return copy_in_any_order(policy, first, last, out);
    }
}
template <class I, class O>
O copy_in_any_order(const Policy& policy, I first, I last, O out) {
    std::ptrdiff_t n = last - first;
    if (n <= 0)
        return out;
    if constexpr (is_device<I>::value == is_device<O>::value) {
        run_with(
            policy,
            [](auto from, auto to, auto into) {
                for (; from != to; ++from, ++into)
                    *into = *from;
            },
            first, last, out);
    } else {
        using V = Value<I>;
        using W = Value<O>;
        if constexpr (is_device<I>::value) {
            V* box;  // what a device iterator computes is computed on the device
            cudaMallocManaged(&box, n * sizeof(V));
            copy_in_any_order(Policy{true, policy.stream}, first, last, device_ptr<V>(box));
            for (std::ptrdiff_t i = 0; i < n; i++)
                out[i] = box[i];
            cudaFree(box);
        } else {
            W* box;
            cudaMallocManaged(&box, n * sizeof(W));
            for (std::ptrdiff_t i = 0; i < n; i++)
                box[i] = first[i];
            copy_in_any_order(Policy{true, policy.stream}, device_ptr<W>(box),
                              device_ptr<W>(box) + n, out);
            cudaFree(box);
        }
    }
    return out + n;
}
}  // namespace detail
template <class I, class O>
O copy(I first, I last, O out) {
    return detail::copy_range(detail::Policy{detail::is_device<I>::value}, first, last, out);
}
template <class I, class O>
O copy(const detail::Policy& policy, I first, I last, O out) {
    return detail::copy_range(policy, first, last, out);
}
template <class I, class N, class O>
O copy_n(I first, N n, O out) {
    return copy(first, first + n, out);
}
}  // namespace thrust
#include "../../macros_back.inc"
