// CUB's sorts by comparisons, and of segments.
#pragma once
#include "device.cuh"
#include "../macros_aside.inc"

namespace cub {
namespace detail {
// Sorts keys, and values with them if there are any, by `less`; all sorts here are stable.
template <class KI, class KO, class VI, class VO, class N, class Less>
void sort_range(KI keys_in, KO keys_out, VI values_in, VO values_out, N n, Less less) {
    std::vector<N> order(n);
    for (N i = 0; i < n; i++)
        order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](N a, N b) { return less(keys_in[a], keys_in[b]); });
    std::vector<Value<KI>> keys(keys_in, keys_in + n);
    for (N i = 0; i < n; i++)
        keys_out[i] = keys[order[i]];
    if constexpr (!std::is_same_v<VI, std::nullptr_t>) {
        std::vector<Value<VI>> values(values_in, values_in + n);
        for (N i = 0; i < n; i++)
            values_out[i] = values[order[i]];
    }
}
}  // namespace detail

struct DeviceMergeSort {
    template <class K, class V, class N, class Less>
    static cudaError_t SortPairs(void* temp, size_t& bytes, K keys, V values, N n, Less less,
                                 cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto keys, auto values) {
                detail::sort_range(keys, keys, values, values, n, less);
            },
            keys, values);
    }
    template <class K, class N, class Less>
    static cudaError_t SortKeys(void* temp, size_t& bytes, K keys, N n, Less less,
                                cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto keys) { detail::sort_range(keys, keys, nullptr, nullptr, n, less); }, keys);
    }
    template <class I, class O, class N, class Less>
    static cudaError_t SortKeysCopy(void* temp, size_t& bytes, I in, O out, N n, Less less,
                                    cudaStream_t s = 0) {
        return detail::two_phases(
            temp, bytes, s,
            [=](auto in, auto out) {
                for (N i = 0; i < n; i++)
                    out[i] = in[i];
                detail::sort_range(out, out, nullptr, nullptr, n, less);
            },
            in, out);
    }
    template <class K, class V, class N, class Less>
    static cudaError_t StableSortPairs(void* temp, size_t& bytes, K keys, V values, N n, Less less,
                                       cudaStream_t s = 0) {
        return SortPairs(temp, bytes, keys, values, n, less, s);
    }
    template <class K, class N, class Less>
    static cudaError_t StableSortKeys(void* temp, size_t& bytes, K keys, N n, Less less,
                                      cudaStream_t s = 0) {
        return SortKeys(temp, bytes, keys, n, less, s);
    }
};

namespace detail {
// Both interfaces of segments: by bits, and without.
template <class K, class V, class B, class E>
cudaError_t sort_segments(void* temp, size_t& bytes, const K* keys, K* keys_out, const V* values,
                          V* values_out, long long n, long long segments, B begins, E ends,
                          int first_bit, int last_bit, bool descending, cudaStream_t s) {
    auto less = [=](const K& a, const K& b) {
        auto x = DeviceRadixSort::order_of(a, first_bit, last_bit);
        auto y = DeviceRadixSort::order_of(b, first_bit, last_bit);
        return descending ? x > y : x < y;
    };
    return two_phases(
        temp, bytes, s,
        [=](auto begins, auto ends) {
            std::vector<K> old_keys(keys, keys + n);
            std::vector<V> old_values;
            if (values)
                old_values.assign(values, values + n);
            for (long long k = 0; k < segments; k++) {
                long long first = begins[k], length = ends[k] - first;
                if (length <= 0)
                    continue;
                const K* in = old_keys.data() + first;
                if (values)
                    sort_range(in, keys_out + first, old_values.data() + first, values_out + first,
                               length, less);
                else
                    sort_range(in, keys_out + first, nullptr, nullptr, length, less);
            }
        },
        begins, ends);
}
template <class K, class V, class F>
cudaError_t in_buffers(void* temp, DoubleBuffer<K>& keys, DoubleBuffer<V>* values, F sort) {
    cudaError_t e = sort();
    if (temp) {
        keys.selector = 1 - keys.selector;
        if (values)
            values->selector = 1 - values->selector;
    }
    return e;
}
}  // namespace detail

#define CUDA_CPU_SEGMENTED(Name, descending)                                                     \
    template <class K, class B, class E>                                                         \
    static cudaError_t Name##Keys##descending(void* temp, size_t& bytes, const K* in, K* out,    \
                                              long long n, long long segments, B begins,         \
                                              E ends CUDA_CPU_BITS, cudaStream_t s = 0) {        \
        const char* none = nullptr;                                                              \
        return detail::sort_segments(temp, bytes, in, out, none, (char*)nullptr, n, segments,    \
                                     begins, ends, CUDA_CPU_FROM_TO, sizeof #descending > 1, s); \
    }                                                                                            \
    template <class K, class V, class B, class E>                                                \
    static cudaError_t Name##Pairs##descending(                                                  \
        void* temp, size_t& bytes, const K* in, K* out, const V* values, V* values_out,          \
        long long n, long long segments, B begins, E ends CUDA_CPU_BITS, cudaStream_t s = 0) {   \
        return detail::sort_segments(temp, bytes, in, out, values, values_out, n, segments,      \
                                     begins, ends, CUDA_CPU_FROM_TO, sizeof #descending > 1, s); \
    }                                                                                            \
    template <class K, class B, class E>                                                         \
    static cudaError_t Name##Keys##descending(void* temp, size_t& bytes, DoubleBuffer<K>& keys,  \
                                              long long n, long long segments, B begins,         \
                                              E ends CUDA_CPU_BITS, cudaStream_t s = 0) {        \
        return detail::in_buffers(temp, keys, (DoubleBuffer<char>*)nullptr, [&] {                \
            return Name##Keys##descending(temp, bytes, keys.Current(), keys.Alternate(), n,      \
                                          segments, begins, ends CUDA_CPU_PASSED, s);            \
        });                                                                                      \
    }                                                                                            \
    template <class K, class V, class B, class E>                                                \
    static cudaError_t Name##Pairs##descending(                                                  \
        void* temp, size_t& bytes, DoubleBuffer<K>& keys, DoubleBuffer<V>& values, long long n,  \
        long long segments, B begins, E ends CUDA_CPU_BITS, cudaStream_t s = 0) {                \
        return detail::in_buffers(temp, keys, &values, [&] {                                     \
            return Name##Pairs##descending(temp, bytes, keys.Current(), keys.Alternate(),        \
                                           values.Current(), values.Alternate(), n, segments,    \
                                           begins, ends CUDA_CPU_PASSED, s);                     \
        });                                                                                      \
    }

struct DeviceSegmentedSort {
#define CUDA_CPU_BITS
#define CUDA_CPU_PASSED
#define CUDA_CPU_FROM_TO 0, int(sizeof(K)) * 8
    CUDA_CPU_SEGMENTED(Sort, )
    CUDA_CPU_SEGMENTED(Sort, Descending)
    CUDA_CPU_SEGMENTED(StableSort, )
    CUDA_CPU_SEGMENTED(StableSort, Descending)
#undef CUDA_CPU_BITS
#undef CUDA_CPU_PASSED
#undef CUDA_CPU_FROM_TO
};
struct DeviceSegmentedRadixSort {
#define CUDA_CPU_BITS , int first_bit = 0, int last_bit = sizeof(K) * 8
#define CUDA_CPU_PASSED , first_bit, last_bit
#define CUDA_CPU_FROM_TO first_bit, last_bit
    CUDA_CPU_SEGMENTED(Sort, )
    CUDA_CPU_SEGMENTED(Sort, Descending)
#undef CUDA_CPU_BITS
#undef CUDA_CPU_PASSED
#undef CUDA_CPU_FROM_TO
};
#undef CUDA_CPU_SEGMENTED
}  // namespace cub
#include "../macros_back.inc"
