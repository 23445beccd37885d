// CUB's algorithms on whole arrays. Every function is called twice: with a null temp_storage it
// says in temp_bytes how much temporary memory it wants (nothing, but never 0, since cudaMalloc of
// 0 bytes gives a null pointer), then it works.
#pragma once
#include <limits>
#include "../thrust/detail/algorithms.h"
#include "block.cuh"
#include "../macros_aside.inc"

namespace cub {
template <class T>
struct DoubleBuffer {
    T* d_buffers[2];
    int selector = 0;
    DoubleBuffer() : d_buffers{nullptr, nullptr} {}
    DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
    T* Current() {
        return d_buffers[selector];
    }
    T* Alternate() {
        return d_buffers[1 - selector];
    }
};

namespace detail {
template <class I>
using Value = typename std::iterator_traits<I>::value_type;
// What an iterator is written with; one that takes anything has no type: then that of what is read.
template <class O, class I>
using Written = std::conditional_t<std::is_void_v<Value<O>>, Value<I>, Value<O>>;
// What is summed in: what the operation makes of a first value and an element, so int for bytes.
template <class F, class T, class I>
using Accumulator = std::decay_t<std::invoke_result_t<F, T, Value<I>>>;
using thrust::detail::raw;

template <class F, class... A>
cudaError_t two_phases(void* temp, size_t& bytes, cudaStream_t stream, F work, const A&... a) {
    if (!temp) {
        bytes = 1;
        return cudaSuccess;
    }
    auto arguments = std::make_tuple(raw(a)...);
    return ::cuda_cpu::device_task(stream, 1, [=](long) { std::apply(work, arguments); });
}
}  // namespace detail

struct DeviceReduce {
    template <class I, class O, class N, class F, class T>
    static cudaError_t Reduce(void* temp, size_t& bytes, I in, O out, N n, F op, T initial,
                              cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out) {
                detail::Accumulator<F, T, I> sum = initial;
                for (N i = 0; i < n; i++)
                    sum = op(sum, in[i]);
                *out = sum;
            },
            in, out);
    }
    template <class I, class O, class N>
    static cudaError_t Sum(void* temp, size_t& bytes, I in, O out, N n, cudaStream_t s = 0) {
        return Reduce(temp, bytes, in, out, n, cub::Sum(), detail::Written<O, I>(0), s);
    }
    template <class I, class O, class N>
    static cudaError_t Max(void* temp, size_t& bytes, I in, O out, N n, cudaStream_t s = 0) {
        return Reduce(temp, bytes, in, out, n, cub::Max(),
                      std::numeric_limits<detail::Value<I>>::lowest(), s);
    }
    template <class I, class O, class N>
    static cudaError_t Min(void* temp, size_t& bytes, I in, O out, N n, cudaStream_t s = 0) {
        return Reduce(temp, bytes, in, out, n, cub::Min(),
                      std::numeric_limits<detail::Value<I>>::max(), s);
    }
    // The result is a pair of place and number; or both apart.
    template <class I, class O, class N>
    static cudaError_t ArgMax(void* temp, size_t& bytes, I in, O out, N n, cudaStream_t s = 0) {
        return extreme(temp, bytes, in, out, n, std::greater<>(), s);
    }
    template <class I, class O, class N>
    static cudaError_t ArgMin(void* temp, size_t& bytes, I in, O out, N n, cudaStream_t s = 0) {
        return extreme(temp, bytes, in, out, n, std::less<>(), s);
    }
    template <class I, class O, class P>
    static cudaError_t ArgMax(void* temp, size_t& bytes, I in, O out, P place, long long n,
                              cudaStream_t s = 0) {
        return extreme_apart(temp, bytes, in, out, place, n, std::greater<>(), s);
    }
    template <class I, class O, class P>
    static cudaError_t ArgMin(void* temp, size_t& bytes, I in, O out, P place, long long n,
                              cudaStream_t s = 0) {
        return extreme_apart(temp, bytes, in, out, place, n, std::less<>(), s);
    }
    template <class K, class U, class I, class O, class R, class F, class N>
    static cudaError_t ReduceByKey(void* temp, size_t& bytes, K keys, U unique, I in, O out, R runs,
                                   F op, N n, cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto keys, auto unique, auto in, auto out, auto runs) {
                N found = 0;
                for (N i = 0; i < n; found++) {
                    detail::Value<K> key = keys[i];
                    detail::Accumulator<F, detail::Value<I>, I> sum = in[i++];
                    for (; i < n && keys[i] == key; i++)
                        sum = op(sum, in[i]);
                    unique[found] = key;
                    out[found] = sum;
                }
                *runs = found;
            },
            keys, unique, in, out, runs);
    }

  private:
    template <class In, class N, class Better>
    static N first_best(In in, N n, Better better) {
        N best = 0;
        for (N i = 1; i < n; i++)
            if (better(in[i], in[best]))
                best = i;
        return best;
    }
    template <class I, class O, class N, class Better>
    static cudaError_t extreme(void* temp, size_t& bytes, I in, O out, N n, Better better,
                               cudaStream_t s) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out) {
                typedef std::conditional_t<std::is_void_v<detail::Value<O>>,
                                           KeyValuePair<int, detail::Value<I>>, detail::Value<O>>
                    Pair;
                Pair pair = {1, {}};  // as CUB has it where there is nothing
                if (n > 0) {
                    pair.key = first_best(in, n, better);
                    pair.value = in[pair.key];
                }
                *out = pair;
            },
            in, out);
    }
    template <class I, class O, class P, class Better>
    static cudaError_t extreme_apart(void* temp, size_t& bytes, I in, O out, P place, long long n,
                                     Better better, cudaStream_t s) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out, auto place) {
                if (n <= 0)
                    return;
                long long best = first_best(in, n, better);
                *out = in[best];
                *place = best;
            },
            in, out, place);
    }
};

struct DeviceScan {
    template <class I, class O, class F, class T, class N>
    static cudaError_t ExclusiveScan(void* temp, size_t& bytes, I in, O out, F op, T initial, N n,
                                     cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out) {
                detail::Accumulator<F, T, I> sum = initial;
                for (N i = 0; i < n; i++) {
                    auto next = op(sum, in[i]);
                    out[i] = sum;
                    sum = next;
                }
            },
            in, out);
    }
    template <class I, class O, class F, class N>
    static cudaError_t InclusiveScan(void* temp, size_t& bytes, I in, O out, F op, N n,
                                     cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out) {
                if (n == 0)
                    return;
                detail::Accumulator<F, detail::Value<I>, I> sum = in[0];
                out[0] = sum;
                for (N i = 1; i < n; i++)
                    out[i] = sum = op(sum, in[i]);
            },
            in, out);
    }
    template <class I, class O, class F, class T, class N>
    static cudaError_t InclusiveScanInit(void* temp, size_t& bytes, I in, O out, F op, T initial,
                                         N n, cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out) {
                detail::Accumulator<F, T, I> sum = initial;
                for (N i = 0; i < n; i++)
                    out[i] = sum = op(sum, in[i]);
            },
            in, out);
    }
    template <class I, class O, class N>
    static cudaError_t ExclusiveSum(void* temp, size_t& bytes, I in, O out, N n,
                                    cudaStream_t s = 0) {
        return ExclusiveScan(temp, bytes, in, out, cub::Sum(), detail::Value<I>(0), n, s);
    }
    template <class I, class O, class N>
    static cudaError_t InclusiveSum(void* temp, size_t& bytes, I in, O out, N n,
                                    cudaStream_t s = 0) {
        return InclusiveScan(temp, bytes, in, out, cub::Sum(), n, s);
    }
    // In place.
    template <class D, class N, std::enable_if_t<std::is_integral_v<N>, int> = 0>
    static cudaError_t ExclusiveSum(void* temp, size_t& bytes, D data, N n, cudaStream_t s = 0) {
        return ExclusiveSum(temp, bytes, data, data, n, s);
    }
    template <class D, class N, std::enable_if_t<std::is_integral_v<N>, int> = 0>
    static cudaError_t InclusiveSum(void* temp, size_t& bytes, D data, N n, cudaStream_t s = 0) {
        return InclusiveSum(temp, bytes, data, data, n, s);
    }

    // Each run of equal keys by itself.
    template <class K, class I, class O, class F, class T, class N, class E = std::equal_to<>>
    static cudaError_t ExclusiveScanByKey(void* temp, size_t& bytes, K keys, I in, O out, F op,
                                          T initial, N n, E equal = E(), cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto keys, auto in, auto out) {
                detail::Accumulator<F, T, I> sum = initial;
                for (N i = 0; i < n; i++) {
                    if (i > 0 && !equal(keys[i - 1], keys[i]))
                        sum = initial;
                    auto next = op(sum, in[i]);
                    out[i] = sum;
                    sum = next;
                }
            },
            keys, in, out);
    }
    template <class K, class I, class O, class F, class N, class E = std::equal_to<>>
    static cudaError_t InclusiveScanByKey(void* temp, size_t& bytes, K keys, I in, O out, F op, N n,
                                          E equal = E(), cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto keys, auto in, auto out) {
                detail::Accumulator<F, detail::Value<I>, I> sum{};
                for (N i = 0; i < n; i++) {
                    if (i > 0 && equal(keys[i - 1], keys[i]))
                        sum = op(sum, in[i]);
                    else
                        sum = in[i];
                    out[i] = sum;
                }
            },
            keys, in, out);
    }
    template <class K, class I, class O, class N, class E = std::equal_to<>>
    static cudaError_t ExclusiveSumByKey(void* temp, size_t& bytes, K keys, I in, O out, N n,
                                         E equal = E(), cudaStream_t s = 0) {
        return ExclusiveScanByKey(temp, bytes, keys, in, out, cub::Sum(), detail::Value<I>(0), n,
                                  equal, s);
    }
    template <class K, class I, class O, class N, class E = std::equal_to<>>
    static cudaError_t InclusiveSumByKey(void* temp, size_t& bytes, K keys, I in, O out, N n,
                                         E equal = E(), cudaStream_t s = 0) {
        return InclusiveScanByKey(temp, bytes, keys, in, out, cub::Sum(), n, equal, s);
    }
};

// Bits first_bit to last_bit alone decide the order, as on the GPU.
struct DeviceRadixSort {
    template <class K, class N>
    static cudaError_t SortKeys(void* temp, size_t& bytes, const K* in, K* out, N n,
                                int first_bit = 0, int last_bit = sizeof(K) * 8,
                                cudaStream_t s = 0) {
        return sort(temp, bytes, in, out, (const char*)nullptr, (char*)nullptr, n, first_bit,
                    last_bit, s, false);
    }
    template <class K, class N>
    static cudaError_t SortKeysDescending(void* temp, size_t& bytes, const K* in, K* out, N n,
                                          int first_bit = 0, int last_bit = sizeof(K) * 8,
                                          cudaStream_t s = 0) {
        return sort(temp, bytes, in, out, (const char*)nullptr, (char*)nullptr, n, first_bit,
                    last_bit, s, true);
    }
    template <class K, class V, class N>
    static cudaError_t SortPairs(void* temp, size_t& bytes, const K* keys, K* keys_out,
                                 const V* values, V* values_out, N n, int first_bit = 0,
                                 int last_bit = sizeof(K) * 8, cudaStream_t s = 0) {
        return sort(temp, bytes, keys, keys_out, values, values_out, n, first_bit, last_bit, s,
                    false);
    }
    template <class K, class V, class N>
    static cudaError_t SortPairsDescending(void* temp, size_t& bytes, const K* keys, K* keys_out,
                                           const V* values, V* values_out, N n, int first_bit = 0,
                                           int last_bit = sizeof(K) * 8, cudaStream_t s = 0) {
        return sort(temp, bytes, keys, keys_out, values, values_out, n, first_bit, last_bit, s,
                    true);
    }
    template <class K, class N>
    static cudaError_t SortKeys(void* temp, size_t& bytes, DoubleBuffer<K>& keys, N n,
                                int first_bit = 0, int last_bit = sizeof(K) * 8,
                                cudaStream_t s = 0) {
        cudaError_t e =
            SortKeys(temp, bytes, keys.Current(), keys.Alternate(), n, first_bit, last_bit, s);
        if (temp)
            keys.selector = 1 - keys.selector;
        return e;
    }
    template <class K, class V, class N>
    static cudaError_t SortPairs(void* temp, size_t& bytes, DoubleBuffer<K>& keys,
                                 DoubleBuffer<V>& values, N n, int first_bit = 0,
                                 int last_bit = sizeof(K) * 8, cudaStream_t s = 0) {
        cudaError_t e = SortPairs(temp, bytes, keys.Current(), keys.Alternate(), values.Current(),
                                  values.Alternate(), n, first_bit, last_bit, s);
        if (temp)
            keys.selector = 1 - keys.selector, values.selector = 1 - values.selector;
        return e;
    }
    template <class K, class N>
    static cudaError_t SortKeysDescending(void* temp, size_t& bytes, DoubleBuffer<K>& keys, N n,
                                          int first_bit = 0, int last_bit = sizeof(K) * 8,
                                          cudaStream_t s = 0) {
        cudaError_t e = SortKeysDescending(temp, bytes, keys.Current(), keys.Alternate(), n,
                                           first_bit, last_bit, s);
        if (temp)
            keys.selector = 1 - keys.selector;
        return e;
    }
    template <class K, class V, class N>
    static cudaError_t SortPairsDescending(void* temp, size_t& bytes, DoubleBuffer<K>& keys,
                                           DoubleBuffer<V>& values, N n, int first_bit = 0,
                                           int last_bit = sizeof(K) * 8, cudaStream_t s = 0) {
        cudaError_t e =
            SortPairsDescending(temp, bytes, keys.Current(), keys.Alternate(), values.Current(),
                                values.Alternate(), n, first_bit, last_bit, s);
        if (temp)
            keys.selector = 1 - keys.selector, values.selector = 1 - values.selector;
        return e;
    }

    // A key as unsigned bits that sort as the key does: the sign bit turned over, and all bits of
    // negative floats.
    template <class K>
    static unsigned long long order_of(K key, int first_bit, int last_bit) {
        unsigned long long bits = 0;
        const int width = sizeof(K) * 8;
        memcpy(&bits, &key, sizeof(K));
        const unsigned long long sign = 1ull << (width - 1);
        if constexpr (std::is_integral_v<K> && std::is_unsigned_v<K>) {
        } else if constexpr (std::is_integral_v<K>) {
            bits ^= sign;
        } else {
            if (bits == sign)
                bits = 0;  // minus zero equals zero
            bits = bits & sign ? ~bits : bits ^ sign;
        }
        if (last_bit < 64)
            bits &= (1ull << last_bit) - 1;
        return bits >> first_bit;
    }

  private:
    template <class K, class V, class N>
    static cudaError_t sort(void* temp, size_t& bytes, const K* keys, K* keys_out, const V* values,
                            V* values_out, N n, int first_bit, int last_bit, cudaStream_t s,
                            bool descending) {
        return detail::two_phases(temp, bytes, s, [=] {
            std::vector<std::pair<unsigned long long, N>> order(n);
            for (N i = 0; i < n; i++)
                order[i] = {order_of(keys[i], first_bit, last_bit), i};
            std::stable_sort(order.begin(), order.end(), [=](const auto& a, const auto& b) {
                return descending ? a.first > b.first : a.first < b.first;
            });
            std::vector<K> old_keys(keys, keys + n);
            for (N i = 0; i < n; i++)
                keys_out[i] = old_keys[order[i].second];
            if (!values)
                return;
            std::vector<V> old(values, values + n);
            for (N i = 0; i < n; i++)
                values_out[i] = old[order[i].second];
        });
    }
};

// num_levels boundaries make num_levels - 1 bins; what falls outside is not counted.
struct DeviceHistogram {
    template <class I, class C, class L, class N>
    static cudaError_t HistogramEven(void* temp, size_t& bytes, I samples, C* histogram, int levels,
                                     L lower, L upper, N n, cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto samples) {
                for (int b = 0; b < levels - 1; b++)
                    histogram[b] = 0;
                for (N i = 0; i < n; i++) {
                    auto v = samples[i];
                    if (v < lower || v >= upper)
                        continue;
                    int bin = std::is_integral_v<L>
                                  ? int((long long)(v - lower) * (levels - 1) /
                                        (long long)(upper - lower))
                                  : int((v - lower) * ((levels - 1) / double(upper - lower)));
                    histogram[bin < levels - 1 ? bin : levels - 2]++;
                }
            },
            samples);
    }
    template <class I, class C, class L, class N>
    static cudaError_t HistogramRange(void* temp, size_t& bytes, I samples, C* histogram,
                                      int levels, const L* bounds, N n, cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto samples) {
                for (int b = 0; b < levels - 1; b++)
                    histogram[b] = 0;
                for (N i = 0; i < n; i++) {
                    long bin = std::upper_bound(bounds, bounds + levels, samples[i]) - bounds - 1;
                    if (bin >= 0 && bin < levels - 1)
                        histogram[bin]++;
                }
            },
            samples);
    }
};

struct DeviceSelect {
    template <class I, class O, class C, class N, class P>
    static cudaError_t If(void* temp, size_t& bytes, I in, O out, C count, N n, P keep,
                          cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out, auto count) {
                N kept = 0;
                for (N i = 0; i < n; i++)
                    if (keep(in[i]))
                        out[kept++] = in[i];
                *count = kept;
            },
            in, out, count);
    }
    template <class I, class F, class O, class C, class N>
    static cudaError_t Flagged(void* temp, size_t& bytes, I in, F flags, O out, C count, N n,
                               cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto flags, auto out, auto count) {
                N kept = 0;
                for (N i = 0; i < n; i++)
                    if (flags[i])
                        out[kept++] = in[i];
                *count = kept;
            },
            in, flags, out, count);
    }
    template <class I, class O, class C, class N>
    static cudaError_t Unique(void* temp, size_t& bytes, I in, O out, C count, N n,
                              cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out, auto count) {
                N kept = 0;
                for (N i = 0; i < n; i++)
                    if (i == 0 || !(in[i] == in[i - 1]))
                        out[kept++] = in[i];
                *count = kept;
            },
            in, out, count);
    }
    template <class K, class I, class KO, class O, class C, class N>
    static cudaError_t UniqueByKey(void* temp, size_t& bytes, K keys, I in, KO keys_out, O out,
                                   C count, N n, cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto keys, auto in, auto keys_out, auto out, auto count) {
                N kept = 0;
                for (N i = 0; i < n; i++) {
                    if (i > 0 && keys[i] == keys[i - 1])
                        continue;
                    keys_out[kept] = keys[i];
                    out[kept++] = in[i];
                }
                *count = kept;
            },
            keys, in, keys_out, out, count);
    }
};

// What is selected comes first, in order; the rest behind it, its last element first.
struct DevicePartition {
    template <class I, class F, class O, class C, class N>
    static cudaError_t Flagged(void* temp, size_t& bytes, I in, F flags, O out, C count, N n,
                               cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto flags, auto out, auto count) {
                *count = split(in, out, n, [=](N i) { return bool(flags[i]); });
            },
            in, flags, out, count);
    }
    template <class I, class O, class C, class N, class P>
    static cudaError_t If(void* temp, size_t& bytes, I in, O out, C count, N n, P first,
                          cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out, auto count) {
                *count = split(in, out, n, [=](N i) { return bool(first(in[i])); });
            },
            in, out, count);
    }
    // Into three, each in order; counts[0] and counts[1] are those of the first two.
    template <class I, class A, class B, class R, class C, class N, class P, class Q>
    static cudaError_t If(void* temp, size_t& bytes, I in, A first_out, B second_out, R rest_out,
                          C counts, N n, P first, Q second, cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto first_out, auto second_out, auto rest_out, auto counts) {
                N a = 0, b = 0, rest = 0;
                for (N i = 0; i < n; i++) {
                    if (first(in[i]))
                        first_out[a++] = in[i];
                    else if (second(in[i]))
                        second_out[b++] = in[i];
                    else
                        rest_out[rest++] = in[i];
                }
                counts[0] = a;
                counts[1] = b;
            },
            in, first_out, second_out, rest_out, counts);
    }

  private:
    template <class In, class Out, class N, class P>
    static N split(In in, Out out, N n, P first) {
        N chosen = 0, rest = 0;
        for (N i = 0; i < n; i++) {
            if (first(i))
                out[chosen++] = in[i];
            else
                out[n - 1 - rest++] = in[i];
        }
        return chosen;
    }
};

struct DeviceSegmentedReduce {
    template <class I, class O, class B, class E, class F, class T>
    static cudaError_t Reduce(void* temp, size_t& bytes, I in, O out, long long segments, B begins,
                              E ends, F op, T initial, cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out, auto begins, auto ends) {
                for (long long k = 0; k < segments; k++) {
                    detail::Accumulator<F, T, I> sum = initial;
                    for (auto i = begins[k]; i < ends[k]; i++)
                        sum = op(sum, in[i]);
                    out[k] = sum;
                }
            },
            in, out, begins, ends);
    }
    template <class I, class O, class B, class E>
    static cudaError_t Sum(void* temp, size_t& bytes, I in, O out, long long segments, B begins,
                           E ends, cudaStream_t s = 0) {
        return Reduce(temp, bytes, in, out, segments, begins, ends, cub::Sum(),
                      detail::Written<O, I>(0), s);
    }
    template <class I, class O, class B, class E>
    static cudaError_t Min(void* temp, size_t& bytes, I in, O out, long long segments, B begins,
                           E ends, cudaStream_t s = 0) {
        return Reduce(temp, bytes, in, out, segments, begins, ends, cub::Min(),
                      std::numeric_limits<detail::Value<I>>::max(), s);
    }
    template <class I, class O, class B, class E>
    static cudaError_t Max(void* temp, size_t& bytes, I in, O out, long long segments, B begins,
                           E ends, cudaStream_t s = 0) {
        return Reduce(temp, bytes, in, out, segments, begins, ends, cub::Max(),
                      std::numeric_limits<detail::Value<I>>::lowest(), s);
    }
};

struct DeviceRunLengthEncode {
    template <class I, class U, class C, class R, class N>
    static cudaError_t Encode(void* temp, size_t& bytes, I in, U unique, C counts, R runs, N n,
                              cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto unique, auto counts, auto runs) {
                N found = 0;
                for (N i = 0; i < n; found++) {
                    N first = i;
                    while (i < n && in[i] == in[first])
                        i++;
                    unique[found] = in[first];
                    counts[found] = i - first;
                }
                *runs = found;
            },
            in, unique, counts, runs);
    }
    // Where runs of at least two begin, and how long they are.
    template <class I, class O, class C, class R, class N>
    static cudaError_t NonTrivialRuns(void* temp, size_t& bytes, I in, O offsets, C lengths, R runs,
                                      N n, cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto offsets, auto lengths, auto runs) {
                N found = 0;
                for (N i = 0; i < n;) {
                    N first = i;
                    while (i < n && in[i] == in[first])
                        i++;
                    if (i - first < 2)
                        continue;
                    offsets[found] = first;
                    lengths[found++] = i - first;
                }
                *runs = found;
            },
            in, offsets, lengths, runs);
    }
};

// One call of `op` for each element, or for each number below n.
struct DeviceFor {
    template <class I, class N, class F>
    static cudaError_t ForEachN(I first, N n, F op, cudaStream_t s = 0) {
        auto in = detail::raw(first);
        return ::cuda_cpu::device_task(s, 1, [=](long) {
            for (N i = 0; i < n; i++)
                op(in[i]);
        });
    }
    template <class I, class F>
    static cudaError_t ForEach(I first, I last, F op, cudaStream_t s = 0) {
        return ForEachN(first, last - first, op, s);
    }
    template <class N, class F>
    static cudaError_t Bulk(N n, F op, cudaStream_t s = 0) {
        return ::cuda_cpu::device_task(s, 1, [=](long) {
            for (N i = 0; i < n; i++)
                op(i);
        });
    }
};
}  // namespace cub
#include "../macros_back.inc"
