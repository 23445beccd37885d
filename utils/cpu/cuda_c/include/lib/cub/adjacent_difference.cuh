// cub::BlockAdjacentDifference: each item and its neighbour in the block's blocked arrangement.
#pragma once
#include "block.cuh"
#include "../macros_aside.inc"

namespace cub {
template <class T, int X, int Y = 1, int Z = 1, int ARCH = 0>
class BlockAdjacentDifference {
    static const int threads = X * Y * Z;

  public:
    struct TempStorage {
        T firsts[threads], lasts[threads];
    };
    __device__ explicit BlockAdjacentDifference(TempStorage& t) : temp(t) {}

    // output[i] = op(input[i], input[i - 1]); the tile's first item stays as it is.
    template <int N, class O, class F>
    __device__ void SubtractLeft(T (&input)[N], O (&output)[N], F op) {
        left(input, output, op, threads * N, nullptr);
    }
    template <int N, class O, class F>
    __device__ void SubtractLeft(T (&input)[N], O (&output)[N], F op, T before) {
        left(input, output, op, threads * N, &before);
    }
    template <int N, class O, class F>
    __device__ void SubtractLeftPartialTile(T (&input)[N], O (&output)[N], F op, int valid) {
        left(input, output, op, valid, nullptr);
    }
    template <int N, class O, class F>
    __device__ void SubtractLeftPartialTile(T (&input)[N], O (&output)[N], F op, int valid,
                                            T before) {
        left(input, output, op, valid, &before);
    }
    // output[i] = op(input[i], input[i + 1]); the tile's last item stays as it is.
    template <int N, class O, class F>
    __device__ void SubtractRight(T (&input)[N], O (&output)[N], F op) {
        right(input, output, op, threads * N, nullptr);
    }
    template <int N, class O, class F>
    __device__ void SubtractRight(T (&input)[N], O (&output)[N], F op, T after) {
        right(input, output, op, threads * N, &after);
    }
    template <int N, class O, class F>
    __device__ void SubtractRightPartialTile(T (&input)[N], O (&output)[N], F op, int valid) {
        right(input, output, op, valid, nullptr);
    }

  private:
    template <int N, class O, class F>
    __device__ void left(T (&input)[N], O (&output)[N], F op, int valid, const T* before) {
        int rank = detail::thread_rank();
        temp.lasts[rank] = input[N - 1];
        __syncthreads();
        for (int i = N - 1; i >= 0; i--) {
            int item = rank * N + i;
            if (item >= valid)
                output[i] = input[i];
            else if (i > 0)
                output[i] = op(input[i], input[i - 1]);
            else if (rank > 0)
                output[i] = op(input[i], temp.lasts[rank - 1]);
            else if (before)
                output[i] = op(input[i], *const_cast<T*>(before));
            else
                output[i] = input[i];
        }
    }
    template <int N, class O, class F>
    __device__ void right(T (&input)[N], O (&output)[N], F op, int valid, const T* after) {
        int rank = detail::thread_rank();
        temp.firsts[rank] = input[0];
        __syncthreads();
        for (int i = 0; i < N; i++) {
            int item = rank * N + i;
            if (item >= valid || (item == valid - 1 && !after))
                output[i] = input[i];
            else if (item == valid - 1)
                output[i] = op(input[i], *const_cast<T*>(after));
            else if (i < N - 1)
                output[i] = op(input[i], input[i + 1]);
            else
                output[i] = op(input[i], temp.firsts[rank + 1]);
        }
    }
    TempStorage& temp;
};
}  // namespace cub
#include "../macros_back.inc"
