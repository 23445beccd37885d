// CUB's collectives of a warp and of a block. Thread 0 (lane 0) does the adding up; that is what a
// CPU does fastest.
#pragma once
#include <algorithm>
#include <functional>
#include <numeric>
#include <type_traits>
#include "../macros_aside.inc"

namespace cub {
struct Sum {
    template <class T, class U>
    __host__ __device__ auto operator()(const T& a, const U& b) const -> decltype(a + b) {
        return a + b;
    }
};
struct Max {
    template <class T>
    __host__ __device__ T operator()(const T& a, const T& b) const {
        return a < b ? b : a;
    }
};
struct Min {
    template <class T>
    __host__ __device__ T operator()(const T& a, const T& b) const {
        return b < a ? b : a;
    }
};
template <class K, class V>
struct KeyValuePair {
    typedef K Key;
    typedef V Value;
    K key;
    V value;
};
// Of two numbers with their places: the greater (the smaller), of equal ones the first.
struct ArgMax {
    template <class K, class V>
    __host__ __device__ KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a,
                                                      const KeyValuePair<K, V>& b) const {
        return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <class K, class V>
    __host__ __device__ KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a,
                                                      const KeyValuePair<K, V>& b) const {
        return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT,
    BLOCK_LOAD_STRIPED,
    BLOCK_LOAD_VECTORIZE,
    BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE
};
enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT,
    BLOCK_STORE_STRIPED,
    BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE
};

namespace detail {
__device__ inline int thread_rank() {
    return (int)((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
}
// The lanes of this thread's group of `width` lanes that exist in the block, as a mask, and this
// lane's place in it.
__device__ inline unsigned group_mask(int width, int* place, int* lanes) {
    int rank = thread_rank(), lane = rank % 32, first = lane / width * width;
    int threads = (int)(blockDim.x * blockDim.y * blockDim.z), in_warp = threads - (rank - lane);
    *place = lane - first;
    *lanes = in_warp - first < width ? in_warp - first : width;
    return (*lanes == 32 ? ~0u : (1u << *lanes) - 1) << first;
}
}  // namespace detail

template <class T, int WIDTH = 32, int ARCH = 0>
class WarpReduce {
  public:
    struct TempStorage {
        T values[WIDTH];
    };
    __device__ explicit WarpReduce(TempStorage& t) : temp(t) {}
    template <class F>
    __device__ T Reduce(T input, F op) {
        return Reduce(input, op, WIDTH);
    }
    template <class F>
    __device__ T Reduce(T input, F op, int valid) {
        int place, lanes;
        unsigned mask = detail::group_mask(WIDTH, &place, &lanes);
        temp.values[place] = input;
        __syncwarp(mask);
        T result = input;
        if (place == 0)
            for (int i = 1; i < lanes && i < valid; i++)
                result = op(result, temp.values[i]);
        __syncwarp(mask);
        return result;
    }
    __device__ T Sum(T input) {
        return Reduce(input, cub::Sum());
    }
    __device__ T Sum(T input, int valid) {
        return Reduce(input, cub::Sum(), valid);
    }

  private:
    TempStorage& temp;
};

template <class T, int WIDTH = 32, int ARCH = 0>
class WarpScan {
  public:
    struct TempStorage {
        T values[WIDTH];
    };
    __device__ explicit WarpScan(TempStorage& t) : temp(t) {}
    template <class F>
    __device__ void InclusiveScan(T input, T& output, F op, T& total) {
        int place, lanes;
        unsigned mask = detail::group_mask(WIDTH, &place, &lanes);
        temp.values[place] = input;
        __syncwarp(mask);
        if (place == 0)
            for (int i = 1; i < lanes; i++)
                temp.values[i] = op(temp.values[i - 1], temp.values[i]);
        __syncwarp(mask);
        output = temp.values[place];
        total = temp.values[lanes - 1];
        __syncwarp(mask);
    }
    template <class F>
    __device__ void InclusiveScan(T input, T& output, F op) {
        T total;
        InclusiveScan(input, output, op, total);
    }
    __device__ void InclusiveSum(T input, T& output) {
        InclusiveScan(input, output, cub::Sum());
    }
    __device__ void InclusiveSum(T input, T& output, T& total) {
        InclusiveScan(input, output, cub::Sum(), total);
    }
    template <class F>
    __device__ void ExclusiveScan(T input, T& output, T initial, F op) {
        int place, lanes;
        unsigned mask = detail::group_mask(WIDTH, &place, &lanes);
        temp.values[place] = input;
        __syncwarp(mask);
        if (place == 0)
            for (int i = 0; i < lanes; i++) {
                T next = op(initial, temp.values[i]);
                temp.values[i] = initial;
                initial = next;
            }
        __syncwarp(mask);
        output = temp.values[place];
        __syncwarp(mask);
    }
    __device__ void ExclusiveSum(T input, T& output) {
        ExclusiveScan(input, output, T(0), cub::Sum());
    }
    __device__ void ExclusiveSum(T input, T& output, T& total) {
        T upto;
        InclusiveScan(input, upto, cub::Sum(), total);
        output = upto - input;
    }

  private:
    TempStorage& temp;
};

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int ARCH = 0>
class BlockReduce {
    static const int threads = X * Y * Z;

  public:
    struct TempStorage {
        T values[threads];
    };
    __device__ explicit BlockReduce(TempStorage& t) : temp(t) {}
    // The result is in thread 0; the other threads' return values mean nothing.
    template <class F>
    __device__ T Reduce(T input, F op, int valid = threads) {
        int rank = detail::thread_rank();
        temp.values[rank] = input;
        __syncthreads();
        if (rank == 0)
            for (int i = 1; i < valid && i < threads; i++)
                input = op(input, temp.values[i]);
        return input;
    }
    template <int N, class F>
    __device__ T Reduce(T (&input)[N], F op) {
        T mine = input[0];
        for (int i = 1; i < N; i++)
            mine = op(mine, input[i]);
        return Reduce(mine, op);
    }
    __device__ T Sum(T input) {
        return Reduce(input, cub::Sum());
    }
    __device__ T Sum(T input, int valid) {
        return Reduce(input, cub::Sum(), valid);
    }
    template <int N>
    __device__ T Sum(T (&input)[N]) {
        return Reduce(input, cub::Sum());
    }

  private:
    TempStorage& temp;
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1,
          int ARCH = 0>
class BlockScan {
    static const int threads = X * Y * Z;

  public:
    struct TempStorage {
        T values[threads], total;
    };
    __device__ explicit BlockScan(TempStorage& t) : temp(t) {}

    template <class F>
    __device__ void InclusiveScan(T input, T& output, F op, T& total) {
        int rank = detail::thread_rank();
        temp.values[rank] = input;
        __syncthreads();
        if (rank == 0) {
            for (int i = 1; i < threads; i++)
                temp.values[i] = op(temp.values[i - 1], temp.values[i]);
            temp.total = temp.values[threads - 1];
        }
        __syncthreads();
        output = temp.values[rank];
        total = temp.total;
    }
    // The total leaves the initial value out.
    template <class F>
    __device__ void ExclusiveScan(T input, T& output, T initial, F op, T& total) {
        int rank = detail::thread_rank();
        temp.values[rank] = input;
        __syncthreads();
        if (rank == 0) {
            T sum = temp.values[0];
            for (int i = 1; i < threads; i++)
                sum = op(sum, temp.values[i]);
            temp.total = sum;
            for (int i = 0; i < threads; i++) {
                T next = op(initial, temp.values[i]);
                temp.values[i] = initial;
                initial = next;
            }
        }
        __syncthreads();
        output = temp.values[rank];
        total = temp.total;
    }
    template <class F>
    __device__ void InclusiveScan(T input, T& output, F op) {
        T total;
        InclusiveScan(input, output, op, total);
    }
    template <class F>
    __device__ void ExclusiveScan(T input, T& output, T initial, F op) {
        T total;
        ExclusiveScan(input, output, initial, op, total);
    }
    __device__ void InclusiveSum(T input, T& output) {
        InclusiveScan(input, output, cub::Sum());
    }
    __device__ void InclusiveSum(T input, T& output, T& total) {
        InclusiveScan(input, output, cub::Sum(), total);
    }
    __device__ void ExclusiveSum(T input, T& output) {
        ExclusiveScan(input, output, T(0), cub::Sum());
    }
    __device__ void ExclusiveSum(T input, T& output, T& total) {
        ExclusiveScan(input, output, T(0), cub::Sum(), total);
    }
    template <int N>
    __device__ void InclusiveSum(T (&input)[N], T (&output)[N]) {
        T mine = input[0], before, total;
        for (int i = 1; i < N; i++)
            mine = mine + input[i];
        ExclusiveSum(mine, before, total);
        for (int i = 0; i < N; i++)
            output[i] = before = before + input[i];
    }
    template <int N>
    __device__ void ExclusiveSum(T (&input)[N], T (&output)[N]) {
        T total;
        ExclusiveSum(input, output, total);
    }
    template <int N>
    __device__ void ExclusiveSum(T (&input)[N], T (&output)[N], T& total) {
        T mine = input[0], before;
        for (int i = 1; i < N; i++)
            mine = mine + input[i];
        ExclusiveSum(mine, before, total);
        for (int i = 0; i < N; i++) {
            T next = before + input[i];
            output[i] = before;
            before = next;
        }
    }

  private:
    TempStorage& temp;
};

// Each thread's N neighbouring elements (STRIPED: N elements a block apart) of a tile that starts
// at `from`.
template <class T, int X, int N, BlockLoadAlgorithm ALGORITHM = BLOCK_LOAD_DIRECT, int Y = 1,
          int Z = 1, int ARCH = 0>
class BlockLoad {
  public:
    struct TempStorage {};
    __device__ BlockLoad() {}
    __device__ explicit BlockLoad(TempStorage&) {}
    template <class I>
    __device__ void Load(I from, T (&items)[N], int valid = X * Y * Z * N) {
        for (int i = 0; i < N; i++)
            if (place(i) < valid)
                items[i] = from[place(i)];
    }
    template <class I, class D>
    __device__ void Load(I from, T (&items)[N], int valid, D otherwise) {
        for (int i = 0; i < N; i++)
            items[i] = place(i) < valid ? T(from[place(i)]) : T(otherwise);
    }

  private:
    __device__ static int place(int i) {
        int rank = detail::thread_rank();
        return ALGORITHM == BLOCK_LOAD_STRIPED ? rank + i * X * Y * Z : rank * N + i;
    }
};
template <class T, int X, int N, BlockStoreAlgorithm ALGORITHM = BLOCK_STORE_DIRECT, int Y = 1,
          int Z = 1, int ARCH = 0>
class BlockStore {
  public:
    struct TempStorage {};
    __device__ BlockStore() {}
    __device__ explicit BlockStore(TempStorage&) {}
    template <class O>
    __device__ void Store(O to, T (&items)[N], int valid = X * Y * Z * N) {
        int rank = detail::thread_rank();
        for (int i = 0; i < N; i++) {
            int place = ALGORITHM == BLOCK_STORE_STRIPED ? rank + i * X * Y * Z : rank * N + i;
            if (place < valid)
                to[place] = items[i];
        }
    }
};

struct NullType {};
template <class K, int X, int N, class V = NullType>
class BlockRadixSort {
    static const int count = X * N;

  public:
    struct TempStorage {
        K keys[count];
        V values[count];
        int order[count];
    };
    __device__ explicit BlockRadixSort(TempStorage& t) : temp(t) {}
    __device__ void Sort(K (&keys)[N]) {
        sort(keys, (V*)nullptr, std::less<K>());
    }
    __device__ void Sort(K (&keys)[N], V (&values)[N]) {
        sort(keys, values, std::less<K>());
    }
    __device__ void SortDescending(K (&keys)[N]) {
        sort(keys, (V*)nullptr, std::greater<K>());
    }
    __device__ void SortDescending(K (&keys)[N], V (&values)[N]) {
        sort(keys, values, std::greater<K>());
    }

  private:
    template <class F>
    __device__ void sort(K (&keys)[N], V* values, F less) {
        int first = detail::thread_rank() * N;
        for (int i = 0; i < N; i++) {
            temp.keys[first + i] = keys[i];
            temp.order[first + i] = first + i;
            if (values)
                temp.values[first + i] = values[i];
        }
        __syncthreads();
        if (first == 0)
            std::stable_sort(temp.order, temp.order + count,
                             [&](int a, int b) { return less(temp.keys[a], temp.keys[b]); });
        __syncthreads();
        for (int i = 0; i < N; i++) {
            keys[i] = temp.keys[temp.order[first + i]];
            if (values)
                values[i] = temp.values[temp.order[first + i]];
        }
    }
    TempStorage& temp;
};
}  // namespace cub
#include "../macros_back.inc"
