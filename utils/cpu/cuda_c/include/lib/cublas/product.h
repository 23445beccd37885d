// The matrix product behind cuBLAS's gemm and cuBLASLt's matmul: D = alpha A B + beta C, then
// whatever a caller wants done with each element.
//
// Tiles of D are shared out over the CPU's cores. Half and bfloat16 are summed in float, integers
// in int. Right, and far from a tuned library's speed.
#pragma once
#include "handle.h"
#include "../macros_aside.inc"

namespace cuda_cpu {
// A matrix, or a batch of them: element (i, j) lies at i * down + j * across from the start of its
// matrix. Matrix b of the batch is at start + b * stride, or where the list says.
template <class T>
struct Operand {
    T* start;
    long down, across, stride;
    T* const* list = nullptr;
    T* matrix(int batch) const {
        return list ? list[batch] : start + batch * stride;
    }
};
// How BLAS states one: columns of `ld` elements, seen as they lie or transposed.
template <class T>
inline Operand<T> operand(cublasOperation_t op, T* start, long ld, long stride,
                          T* const* list = nullptr) {
    if (op == CUBLAS_OP_N)
        return {start, 1, ld, stride, list};
    return {start, ld, 1, stride, list};
}

// What a GPU's tensor cores make of floats before they multiply, where a mode allows it.
enum class InputType { as_given, tf32, half, bfloat16 };

inline float tf32_of(float x) {  // 10 bits of mantissa, ties away from zero
    if (!std::isfinite(x))
        return x;
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(&x, &bits, sizeof bits);
    return x;
}
template <class Sum>
inline Sum rounded(Sum x, InputType inputs) {
    if constexpr (std::is_same_v<Sum, float>) {
        if (inputs == InputType::tf32)
            return tf32_of(x);
        if (inputs == InputType::half)
            return __half2float(__float2half(x));
        if (inputs == InputType::bfloat16)
            return __bfloat162float(__float2bfloat16(x));
    }
    return x;
}

template <class S>
struct SumOf {
    using type = float;
};
template <>
struct SumOf<double> {
    using type = double;
};
template <>
struct SumOf<int> {
    using type = int;
};

struct AsItIs {
    template <class Sum>
    Sum operator()(Sum value, int, int) const {
        return value;
    }
};

// `finish` is given each value with its batch and its row, before it is stored.
template <class A, class C, class S, class Finish = AsItIs>
struct Product {
    int m, n, k;
    Operand<const A> a, b;
    Operand<const C> c;
    Operand<C> d;
    Scalar<S> alpha, beta;
    InputType inputs = InputType::as_given;
    Finish finish = {};

    static const int tile = 64, depth = 128;
    using Sum = typename SumOf<S>::type;

    // A strip of A is laid out anew, so that the innermost loop runs over neighbours.
    void load_strip(const A* from, int row, int rows, int p0, int steps, Sum* strip) const {
        for (int p = 0; p < steps; p++)
            for (int i = 0; i < rows; i++) {
                const A& value = from[(row + i) * a.down + (p0 + p) * a.across];
                strip[p * tile + i] = rounded(Sum(value), inputs);
            }
    }
    void add_strip(const A* from, int col, int cols, int p0, int steps, const Sum* strip,
                   Sum* sums) const {
        for (int j = 0; j < cols; j++) {
            Sum* sum = &sums[j * tile];
            for (int p = 0; p < steps; p++) {
                const A& value = from[(p0 + p) * b.down + (col + j) * b.across];
                const Sum factor = rounded(Sum(value), inputs);
                const Sum* column = &strip[p * tile];
                for (int i = 0; i < tile; i++)
                    sum[i] += column[i] * factor;
            }
        }
    }
    void store(int batch, int row, int rows, int col, int cols, const Sum* sums) const {
        const C* old = c.matrix(batch);
        C* to = d.matrix(batch);
        const Sum scale = Sum(alpha.get()), keep = Sum(beta.get());
        for (int j = 0; j < cols; j++)
            for (int i = 0; i < rows; i++) {
                Sum value = scale * sums[j * tile + i];
                if (keep != 0)  // 0 times NaN is no NaN here: the old value is not read
                    value += keep * Sum(old[(row + i) * c.down + (col + j) * c.across]);
                to[(row + i) * d.down + (col + j) * d.across] = C(finish(value, batch, row + i));
            }
    }
    void compute(int batch, int row, int col) const {
        const A *from_a = a.matrix(batch), *from_b = b.matrix(batch);
        int rows = std::min(m - row, tile + 0), cols = std::min(n - col, tile + 0);
        std::vector<Sum> strip(depth * tile), sums(tile * tile);
        for (int p0 = 0; p0 < k; p0 += depth) {
            int steps = std::min(k - p0, depth + 0);
            load_strip(from_a, row, rows, p0, steps, strip.data());
            add_strip(from_b, col, cols, p0, steps, strip.data(), sums.data());
        }
        store(batch, row, rows, col, cols, sums.data());
    }
};

// Does `batches` products in the stream.
template <class P>
inline cublasStatus_t run_product(cudaStream_t stream, const P& p, int batches) {
    long across = (p.m + P::tile - 1) / P::tile, down = (p.n + P::tile - 1) / P::tile;
    long tiles = across * down;
    return blas_status(device_task(stream, tiles * batches, [=](long i) {
        int batch = int(i / tiles), row = int(i % tiles % across), col = int(i % tiles / across);
        p.compute(batch, row * P::tile, col * P::tile);
    }));
}
}  // namespace cuda_cpu
#include "../macros_back.inc"
